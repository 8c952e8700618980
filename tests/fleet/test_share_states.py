"""States of share-partitions on real nodes in this process: asked for here and over gRPC, over restarts and leaders."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.share.coordinator import SHARE_STATE_TOPIC
from ottla.share.core.messages import Delivery, Persister, ShareKey, ShareState, StateBatch, Summary
from support.nodes import InnerNode, inner_nodes, until

K = Delivery.ACKNOWLEDGED
PARTITIONS = 6
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": str(PARTITIONS),
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}


async def write_all(nodes: Sequence[InnerNode], keys: Sequence[ShareKey], number: int) -> None:
    """From every node in turn, so that some are coordinated where they are asked for and some are not."""

    async def write(persister: Persister, key: ShareKey) -> None:
        batch = StateBatch(10 * number, 10 * number + 4, K, 1)
        await persister.write(key, state_epoch=1, leader_epoch=2, start=-1, batches=[batch])

    persisters = [node.coordinators.persister for node in nodes]
    await asyncio.gather(*(write(persisters[index % len(nodes)], key) for index, key in enumerate(keys)))


def expected(rounds: int) -> ShareState:
    return ShareState(1, 0, tuple(StateBatch(10 * number, 10 * number + 4, K, 1) for number in range(rounds)))


async def begin(node: InnerNode, topic: str, *, replicas: int) -> list[ShareKey]:
    topic_id = await node.make_topic(topic, partitions=12, replication_factor=replicas)
    keys = [ShareKey("group", topic_id, index) for index in range(12)]
    persister = node.coordinators.persister
    await asyncio.gather(*(persister.initialize(key, state_epoch=1, start=0) for key in keys))
    states = await asyncio.gather(*(persister.read(key, leader_epoch=2) for key in keys))
    assert states == [expected(0)] * len(keys)
    return keys


def test_a_broker_alone_keeps_them_over_restarts(tmp_path: Path) -> None:
    async def run() -> None:
        async with inner_nodes(tmp_path, 1, **SETTINGS) as nodes:
            (node,) = nodes
            keys = await begin(node, "t", replicas=1)
            for number in range(6):
                await write_all(nodes, keys, number)
                if number % 2:
                    await node.stop()
                    await node.start()
            persister = node.coordinators.persister
            assert [await persister.read(key, leader_epoch=2) for key in keys] == [expected(6)] * len(keys)
            assert await persister.summary(keys[0]) == Summary(1, 0, 2)
            await persister.delete(keys[0])
            assert await persister.summary(keys[0]) == Summary()

    asyncio.run(run())


def test_a_fleet_keeps_them_while_brokers_come_and_go(tmp_path: Path) -> None:
    async def run() -> None:
        async with inner_nodes(tmp_path, 3, **SETTINGS) as nodes:
            keys = await begin(nodes[0], "t", replicas=3)
            led = {part.leader for part in nodes[0].image.topics[SHARE_STATE_TOPIC].partitions}
            assert len(led) > 1, "all would be asked for where they are"
            await write_all(nodes, keys, 0)
            for number, node in enumerate(nodes, start=1):
                await node.stop()
                others = [one for one in nodes if one is not node]
                await write_all(others, keys, number)
                await node.start()
                await in_sync(node)
            for node in nodes:
                states = [await node.coordinators.persister.read(key, leader_epoch=2) for key in keys]
                assert states == [expected(4)] * len(keys)

    asyncio.run(run())


async def in_sync(node: InnerNode) -> None:
    def all_in_sync() -> bool:
        return all(len(part.isr) == 3 for topic in node.image.topics.values() for part in topic.partitions)

    await until(all_in_sync, "all replicas are in sync")


def test_refusals_cross_the_wire(tmp_path: Path) -> None:
    async def run() -> None:
        async with inner_nodes(tmp_path, 3, **SETTINGS) as nodes:
            key, *_ = await begin(nodes[0], "t", replicas=3)
            for node in nodes:
                persister = node.coordinators.persister
                with pytest.raises(KafkaError) as refused:
                    await persister.write(key, state_epoch=0, leader_epoch=2, start=1, batches=[])
                assert refused.value.code is Code.fenced_state_epoch and "epoch 0" in str(refused.value)
                with pytest.raises(KafkaError) as refused:
                    await persister.read(key, leader_epoch=1)
                assert refused.value.code is Code.fenced_leader_epoch

    asyncio.run(run())


def test_what_newer_snapshots_replace_goes_on_all_replicas(tmp_path: Path) -> None:
    quick = {
        "share.coordinator.state.topic.prune.interval.ms": "300",
        "share.coordinator.cold.partition.snapshot.interval.ms": "500",
    }

    async def run() -> None:
        async with inner_nodes(tmp_path, 3, **SETTINGS, **quick) as nodes:
            keys = await begin(nodes[0], "t", replicas=3)
            for number in range(10):
                await write_all(nodes, keys, number)

            def lengths() -> list[int]:
                logs = [one.log for node in nodes for one in state_partitions(node)]
                return [log.end_offset - log.start_offset for log in logs]

            await until(lambda: sum(lengths()) == 3 * len(keys), "a snapshot of each is left")
            await nodes[0].stop()
            await nodes[0].start()
            states = [await nodes[0].coordinators.persister.read(key, leader_epoch=2) for key in keys]
            assert states == [expected(10)] * len(keys)

    asyncio.run(run())


def state_partitions(node: InnerNode) -> list[Partition]:
    replicas = node.coordinators.share_states._replicas
    return [replicas.require(SHARE_STATE_TOPIC, index) for index in range(PARTITIONS)]
