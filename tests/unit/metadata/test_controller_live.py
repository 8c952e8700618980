"""A sole voter on a real loop and a real disk: commit, restart, same image."""

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    AllocateProducerIds,
    CreateAcls,
    CreateTopics,
    NewTopic,
    RegisterBroker,
    UnfenceBroker,
)
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.model.acls import AclBinding, PatternType, Permission
from ottla.metadata.runtime.active import ActiveController
from ottla.metadata.runtime.feed import MetadataMachine
from ottla.raft.core.messages import Member, Voter
from ottla.raft.core.raft import NotLeader, RaftConfig
from ottla.raft.driver import RaftDriver, SnapshotLimits
from ottla.raft.store import RaftStore
from ottla.system import RealDisk, System

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
DIRECTORY = uuid.UUID(int=7)


class Node:
    """A controller and the broker that it serves."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.system = options.pop("system", None) or System()
        self.feed = MetadataMachine(CLUSTER)
        self.driver = RaftDriver(
            RaftConfig(member=Member(0, DIRECTORY), entries_kept=10),
            store=RaftStore(self.system.disk, str(folder)),
            system=self.system,
            machine=self.feed,
            seed=(Voter(0, DIRECTORY),),
            **options,
        )
        self.controller = ActiveController(feed=self.feed, driver=self.driver, system=self.system, node_id=0)

    async def __aenter__(self) -> "Node":
        await self.driver.start()
        await self.driver.until_leader_known()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.driver.stop()

    async def add_broker(self) -> int:
        register = RegisterBroker(0, uuid.uuid4(), CLUSTER, [], log_dirs=[DIRECTORY], features=SUPPORTED_FEATURES)
        epoch = await self.controller.submit(register)
        await self.controller.submit(UnfenceBroker(0, epoch))
        return epoch


def test_a_thousand_batches_survive_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Node(tmp_path) as node:
            epoch = await node.add_broker()
            blocks = await asyncio.gather(
                *(node.controller.submit(AllocateProducerIds(0, epoch)) for _ in range(1_000))
            )
            assert sorted(block.first for block in blocks) == list(range(0, 1_000_000, 1_000))
            before = node.feed.image
            assert before.next_producer_id == 1_000_000
            assert before.features == {
                "metadata.version": 27,
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "transaction.version": 2,
            }
        async with Node(tmp_path) as node:
            assert node.feed.image.next_producer_id == before.next_producer_id
            assert (node.feed.image.brokers, node.feed.image.features) == (before.brokers, before.features)
            assert node.feed.image.features_epoch == before.features_epoch
            assert node.feed.image.version == before.version + 1  # the new term's first entry

    asyncio.run(scenario())


def test_what_is_there_already_is_told_when_it_is_committed(tmp_path: Path) -> None:
    """Another leader may never hear of what this one has only proposed."""

    async def scenario() -> None:
        async with Node(tmp_path) as node:
            await node.add_broker()
            binding = AclBinding(2, PatternType.LITERAL, "orders", "User:ann", "*", 3, Permission.DENY)
            first, second = (asyncio.ensure_future(node.controller.submit(CreateAcls([binding]))) for _ in range(2))
            assert (await second)[0].ok
            assert binding.id in node.feed.image.acls
            await first

    asyncio.run(scenario())


def test_ten_thousand_partitions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with Node(tmp_path) as node:
            await node.add_broker()
            began = time.perf_counter()
            topics = [NewTopic("wide", 5_000, 1), *(NewTopic(f"narrow-{number}", 10, 1) for number in range(500))]
            outcomes = await node.controller.submit(CreateTopics(topics))
            created_ms = (time.perf_counter() - began) * 1000
            assert all(outcome.ok for outcome in outcomes) and len(outcomes) == 501
            assert node.feed.image.partition_count == 10_000
            topics_before = node.feed.image.topics
        began = time.perf_counter()
        async with Node(tmp_path) as node:
            restarted_ms = (time.perf_counter() - began) * 1000
            assert node.feed.image.topics == topics_before
        with capsys.disabled():
            print(f"\n10,000 partitions: created in {created_ms:.0f} ms, restarted in {restarted_ms:.0f} ms")
        assert created_ms < 10_000 and restarted_ms < 10_000

    asyncio.run(scenario())


def test_snapshots_bound_the_log_and_restore_the_image(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Node(tmp_path, snapshot_limits=SnapshotLimits(entries_max=50)) as node:
            epoch = await node.add_broker()
            for _ in range(200):
                await node.controller.submit(AllocateProducerIds(0, epoch))
            await node.controller.submit(CreateTopics([NewTopic("kept", 3, 1)]))
            assert node.driver.raft.log.offset > 100
            before = node.feed.image
        folder = tmp_path / "__ottla_metadata"
        assert len(list(folder.glob("*.snapshot"))) == 1
        async with Node(tmp_path) as node:
            assert node.feed.image.topics == before.topics
            assert node.feed.image.next_producer_id == before.next_producer_id == 200_000

    asyncio.run(scenario())


def test_decisions_see_what_is_proposed_but_not_committed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Node(tmp_path) as node:
            await node.add_broker()
            command = CreateTopics([NewTopic("once", 1, 1)])
            first, second = await asyncio.gather(node.controller.submit(command), node.controller.submit(command))
            assert [first[0].code, second[0].code] == [Code.none, Code.topic_already_exists]

    asyncio.run(scenario())


class FailingDisk(RealDisk):
    """Fails the next sync of a log file when asked to."""

    failing = False

    def open(self, path: str, *, create: bool = False) -> Any:
        return FailingFile(self, super().open(path, create=create))


class FailingFile:
    def __init__(self, disk: FailingDisk, file: Any) -> None:
        self.disk, self.file = disk, file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def sync(self) -> None:
        if self.disk.failing:
            raise OSError(5, "Input/output error")
        self.file.sync()


def test_a_failed_sync_stops_the_node(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = FailingDisk()
        node = Node(tmp_path, system=System(disk=disk))
        async with node:
            epoch = await node.add_broker()
            version = node.feed.image.version
            disk.failing = True
            with pytest.raises(KafkaError) as refused:
                await node.controller.submit(AllocateProducerIds(0, epoch))
            assert refused.value.code is Code.not_controller
            assert isinstance(node.driver.closed.exception(), OSError)
            assert node.feed.image.version == version
            with pytest.raises(NotLeader):
                node.driver.submit([b""])

    asyncio.run(scenario())


def test_describe_quorum(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Node(tmp_path) as node:
            epoch = await node.add_broker()
            await node.controller.submit(AllocateProducerIds(0, epoch))
            state = node.driver.describe()
            assert (state.leader_id, state.leader_epoch) == (0, 1)
            assert state.high_watermark == node.feed.image.version + 1
            assert [(each.id, each.directory, each.log_end_offset) for each in state.voters] == [
                (0, DIRECTORY, state.high_watermark)
            ]
            assert not state.observers

    asyncio.run(scenario())
