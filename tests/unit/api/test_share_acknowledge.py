"""ShareAcknowledge over real logs: written, refused, or told to a new leader."""

import asyncio
from pathlib import Path

from ottla.errors import Code, KafkaError
from support.replica_hosts import until
from support.share_clients import (
    ACCEPT,
    RELEASE,
    ShareMember,
    ShareNode,
    acquired,
    key_of,
    opened,
    parts_of,
    with_node,
)


def test_acknowledgements_that_cannot_be_written(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana = await opened(node, "ana")
        await ana.fetch()
        node.persister.refusal = KafkaError(Code.coordinator_load_in_progress)
        answer = await ana.acknowledge([(0, 2, (ACCEPT,))])
        assert parts_of(answer)[0].error_code is Code.coordinator_not_available
        assert parts_of(await ana.acknowledge([(0, 2, (ACCEPT,))]))[0].error_code is Code.none

    with_node(test, tmp_path)


def test_fenced_and_loaded_anew(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 2)
        ana = ShareMember(node, "ana")
        await ana.fetch(0)
        await node.persister.initialize(key_of(node), state_epoch=1, start=4)
        await node.persister.write(key_of(node), state_epoch=1, leader_epoch=0, start=4, batches=())
        answer = parts_of(await ana.acknowledge([(0, 5, (ACCEPT,))]))[0]
        assert answer.error_code is Code.not_leader_or_follower
        assert acquired(await ana.fetch(wait_ms=500)) == [(4, 5, 1)]

    with_node(test, tmp_path)


def test_refused_acknowledgements(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana = await opened(node, "ana")
        await ana.fetch()
        for spans, code in [
            ([(0, 2, (7,))], Code.invalid_request),
            ([(0, 5, (ACCEPT,))], Code.invalid_request),
        ]:
            assert parts_of(await ana.acknowledge(spans))[0].error_code is code
        carried = parts_of(await ana.fetch(acknowledge={0: [(2, 0, (ACCEPT,))], 9: [(0, 0, (ACCEPT,))]}))
        assert Code(carried[0].acknowledge_error_code) is Code.invalid_request
        assert Code(carried[9].acknowledge_error_code) is Code.unknown_topic_or_partition
        other = await ana.acknowledge([(0, 0, (ACCEPT,))], index=3)
        assert parts_of(other)[3].error_code is Code.unknown_topic_or_partition

    with_node(test, tmp_path)


def test_a_new_leader_finds_what_was_acknowledged(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 3)
        await node.fleet.same()
        ana = ShareMember(node, "ana")
        assert acquired(await ana.fetch(0)) == [(0, 8, 1)]
        await ana.acknowledge([(0, 1, (ACCEPT,)), (2, 2, (RELEASE,)), (5, 5, (ACCEPT,))])
        waiting = asyncio.ensure_future(ana.fetch(wait_ms=10_000, records=0))
        await node.fleet.elect("orders", 0, 2)
        waiting.cancel()
        other = ShareNode(node.fleet, 2, node.persister)
        await until(lambda: node.fleet.partition(2).high_watermark == 9)
        moved = ShareMember(other, "ana")
        assert acquired(await moved.fetch(0, wait_ms=5000)) == [(2, 2, 2), (3, 4, 1), (6, 8, 1)]
        left = parts_of(await ana.acknowledge([(3, 4, (ACCEPT,))]))[0]
        assert left.error_code is Code.not_leader_or_follower and left.current_leader.leader_id == 2
        await other.shares.stop()

    with_node(test, tmp_path, brokers=(1, 2))
