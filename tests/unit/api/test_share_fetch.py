"""ShareFetch over real logs: what members get, in which order and when. kio's requests in, kio reads the answers."""

import asyncio
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from ottla.errors import Code
from ottla.share.core.chunk import Chunk
from ottla.share.core.messages import Delivery, StateBatch
from ottla.share.fetching import BATCHES_MAX, FAILURES_MAX
from ottla.wire import records
from ottla.wire.batch import iterate
from support.logs import T0, make_batch, make_marker
from support.replica_hosts import until
from support.share_clients import (
    ACCEPT,
    GAP,
    GROUP,
    REJECT,
    RELEASE,
    ShareMember,
    ShareNode,
    acquired,
    key_of,
    opened,
    parts_of,
    with_node,
)


def test_fetch_acquire_accept(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 4)  # of three records each
        ana, ben = ShareMember(node, "ana"), ShareMember(node, "ben")
        first = await ana.fetch(0, records=5)
        assert first.error_code is Code.none and first.acquisition_lock_timeout.total_seconds() == 30
        assert acquired(first) == [(0, 5, 1)]
        found = parts_of(first)[0].records
        assert [batch.base_offset for batch in iterate(found)] == [0, 3], "the batches of what is acquired, no more"
        assert acquired(await ben.fetch(0)) == [(6, 11, 1)]
        answer = await ana.acknowledge([(0, 3, (ACCEPT,)), (4, 5, (RELEASE, REJECT))])
        assert parts_of(answer)[0].error_code is Code.none
        assert node.persister.written[-1] == (
            key_of(node),
            4,
            (StateBatch(4, 4, Delivery.AVAILABLE, 1), StateBatch(5, 5, Delivery.ARCHIVED, 1)),
        )
        assert acquired(await ben.fetch(acknowledge={0: [(6, 11, (ACCEPT,))]})) == [(4, 4, 2)]

    with_node(test, tmp_path)


@pytest.mark.parametrize("wakes", ["append", "release", "expiry"])
def test_a_fetch_waits(tmp_path: Path, wakes: str) -> None:
    async def test(node: ShareNode) -> None:
        node.set_group("share.record.lock.duration.ms", "1000")
        ana, ben = ShareMember(node, "ana"), ShareMember(node, "ben")
        if wakes != "append":
            node.fleet.write(1)
        await ana.fetch(0)
        waiting = asyncio.ensure_future(ben.fetch(0, wait_ms=10_000))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        if wakes == "append":
            node.fleet.write(1)
        elif wakes == "release":
            await ana.acknowledge([(0, 2, (RELEASE,))])
        begun = time.monotonic()
        assert acquired(await waiting) == [(0, 2, 1 if wakes == "append" else 2)]
        assert time.monotonic() - begun < 2.0

    with_node(test, tmp_path)


def test_a_crowd_waits(tmp_path: Path) -> None:
    """One record wakes one of them, several wake each other, and who wants more than there is lets others go first."""

    async def test(node: ShareNode) -> None:
        greedy = ShareMember(node, "greedy")
        crowd = [await opened(node, f"member-{number}", wait_ms=10) for number in range(10)]
        waiting = [asyncio.ensure_future(greedy.fetch(0, min_bytes=100_000, wait_ms=2000))]
        await asyncio.sleep(0.01)
        waiting += [asyncio.ensure_future(member.fetch(records=1, wait_ms=20_000)) for member in crowd]
        await asyncio.sleep(0.05)
        node.fleet.write(1, 1)
        await asyncio.sleep(0.05)
        assert [task.done() for task in waiting].count(True) == 1
        await asyncio.sleep(0.05)
        waiting[3].cancel()
        node.fleet.write(1, 9)
        done, _ = await asyncio.wait([task for task in waiting[1:] if not task.cancelled()], timeout=5)
        spans = sorted(span for task in done if not task.cancelled() for span in acquired(task.result()))
        assert spans == [(at, at + 2, 1) for at in range(0, 27, 3)]
        assert acquired(await waiting[0]) == [(27, 29, 1)]

    with_node(test, tmp_path)


def test_what_is_not_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 2)
        monkeypatch.setattr(node.fleet.partition(1), "read_slice", lambda **_: None)
        assert acquired(await ShareMember(node, "ana").fetch(0, wait_ms=1000)) == [(0, 5, 1)]

    with_node(test, tmp_path)


def test_time_is_up_and_not_enough_bytes(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        ana = ShareMember(node, "ana")
        nothing = await ana.fetch(0, wait_ms=50)
        assert acquired(nothing) == [] and parts_of(nothing)[0].error_code is Code.none
        assert parts_of(await ana.fetch(wait_ms=50)) == {}, "no news"
        node.fleet.write(1)
        begun = time.monotonic()
        assert acquired(await ana.fetch(wait_ms=200, min_bytes=100_000)) == [(0, 2, 1)]
        assert time.monotonic() - begun > 0.15

    with_node(test, tmp_path)


def test_what_is_not_here(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        await node.fleet.elect("orders", 0, 2)
        ana = ShareMember(node, "ana")
        answer = await ana.fetch(0, 7)
        parts = parts_of(answer)
        assert parts[0].error_code is Code.not_leader_or_follower and parts[0].current_leader.leader_id == 2
        assert [(each.node_id, each.port) for each in answer.node_endpoints] == [(2, 9094)]
        assert parts[7].error_code is Code.unknown_topic_or_partition
        unknown = await ShareMember(node, "ben").fetch(0, topic_id=uuid.UUID(int=5))
        assert parts_of(unknown)[0].error_code is Code.unknown_topic_id

    with_node(test, tmp_path, brokers=(1, 2))


def test_turns(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        for index in range(3):
            node.fleet.write(1, 2, index=index)
        ana = ShareMember(node, "ana")
        answers = [await ana.fetch(0, 1, 2, records=1)] + [await ana.fetch(records=1) for _ in range(5)]
        served = [[index for index in range(3) if acquired(answer, index)] for answer in answers]
        assert served == [[0], [1], [2], [0], [1], [2]]
        assert parts_of(await ana.fetch(forget=(0, 1, 2))) == {}

    with_node(test, tmp_path, partitions=3)


@pytest.mark.parametrize(
    ("reset", "begins"), [("latest", 3), ("earliest", 0), ("by_duration:PT1H", 0), ("by_duration:PT0S", 3)]
)
def test_where_a_group_begins(tmp_path: Path, reset: str, begins: int) -> None:
    async def test(node: ShareNode) -> None:
        now_ms = node.system.clock.wall_ms()
        node.fleet.write(1, timestamp=now_ms - 60_000)
        node.set_group("share.auto.offset.reset", reset)
        ana = ShareMember(node, "ana")
        await ana.fetch(0, wait_ms=200, records=0)
        await until(lambda: node.shares.find(GROUP, (ana.topic_id.bytes, 0)))
        assert (await node.persister.summary(key_of(node))).start == begins
        node.fleet.write(1)
        assert acquired(await ana.fetch(wait_ms=1000)) == [(begins, 5, 1)]

    with_node(test, tmp_path)


def test_the_log_is_cut_while_records_are_under_way(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 4)
        ana = ShareMember(node, "ana")
        assert acquired(await ana.fetch(0, records=6)) == [(0, 5, 1)]
        node.fleet.partition(1).delete_before(5)
        assert parts_of(await ana.acknowledge([(0, 5, (ACCEPT,))]))[0].error_code is Code.none
        assert acquired(await ana.fetch()) == [(6, 11, 1)]

    with_node(test, tmp_path)


@pytest.mark.parametrize("committed", [True, False])
def test_transactions(tmp_path: Path, committed: bool) -> None:
    """Markers are for no consumer; aborted records only for those who read uncommitted ones."""

    async def test(node: ShareNode) -> None:
        node.set_group("share.isolation.level", "read_committed" if committed else "read_uncommitted")
        partition = node.fleet.partition(1)
        ana = await opened(node, "ana")
        append_transactional(node, (9, 0, 0), count=3)
        assert acquired(await ana.fetch()) == ([] if committed else [(0, 2, 1)])
        partition.append(make_marker(commit=False, producer=(9, 0, -1)), acks_all=True, from_client=False)
        append_transactional(node, (9, 0, 3), count=2)
        partition.append(make_marker(commit=True, producer=(9, 0, -1)), acks_all=True, from_client=False)
        assert acquired(await ana.fetch(wait_ms=1000)) == [(4, 5, 1)]
        node.fleet.write(1)
        assert acquired(await ana.fetch(wait_ms=1000)) == [(7, 9, 1)]
        await ana.acknowledge([(4, 5, (ACCEPT,)), (7, 9, (ACCEPT,))])
        assert node.persister.written[-1][1] == (10 if committed else 0)

    with_node(test, tmp_path)


def test_a_commit_is_enough_for_who_waits_for_many_bytes(tmp_path: Path) -> None:
    """Its marker is small, and makes readable what was appended before."""

    async def test(node: ShareNode) -> None:
        node.set_group("share.isolation.level", "read_committed")
        ana = await opened(node, "ana")
        waiting = asyncio.ensure_future(ana.fetch(wait_ms=60_000, min_bytes=1000))
        await asyncio.sleep(0.02)
        for sequence in range(0, 300, 3):
            append_transactional(node, (9, 0, sequence), count=3)
        await asyncio.sleep(0.02)
        assert not waiting.done()
        marker = make_marker(commit=True, producer=(9, 0, -1))
        node.fleet.partition(1).append(marker, acks_all=True, from_client=False)
        assert acquired(await asyncio.wait_for(waiting, 10))[0][0] == 0

    with_node(test, tmp_path)


def append_transactional(node: ShareNode, producer: tuple[int, int, int], *, count: int) -> None:
    partition = node.fleet.partition(1)
    batch = make_batch(count, producer=producer, transactional=True)
    ticket = partition.log.producers.verifications.begin_for(batch, adds_partitions=False, now_ms=T0)
    partition.append(batch, acks_all=True, ticket=ticket)


def test_compaction_leaves_holes_for_nobody(tmp_path: Path) -> None:
    """Offsets inside a batch that have no record are acquired with it; the client says that they are gaps."""

    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana = await opened(node, "ana")
        found = parts_of(await ana.fetch())[0]
        assert [record.offset for batch in iterate(found.records) for record in records.iterate(batch)] == [0, 1, 2]
        await ana.acknowledge([(0, 2, (ACCEPT, GAP, ACCEPT))])
        assert node.persister.written[-1][1:] == (3, ())

    with_node(test, tmp_path)


def test_very_many_partitions_that_do_not_exist(tmp_path: Path) -> None:
    """An answer names some of them; others get their turn. Those that are there are not left out for long."""

    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana, many = ShareMember(node, "ana"), range(1000, 1000 + FAILURES_MAX + 10)
        assert set(parts_of(await ana.fetch(*many, wait_ms=0))) == set(many), "the first answer has them all"
        first = parts_of(await ana.fetch(0, wait_ms=0))
        assert len(first) == FAILURES_MAX and 0 not in first
        for _ in range(100):
            if found := acquired(await ana.fetch(wait_ms=20)):
                break
            await asyncio.sleep(0.01)
        assert found == [(0, 2, 1)]

    with_node(test, tmp_path)


def test_who_waits_for_more_does_not_read_at_every_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana = await opened(node, "ana")
        partition, reads = node.fleet.partition(1), list[int]()
        plain, size = partition.read_slice, len(parts_of(await ShareMember(node, "zoe").fetch(0))[0].records)

        def counted(**asked: Any) -> Any:
            reads.append(asked["start"])
            return plain(**asked)

        monkeypatch.setattr(partition, "read_slice", counted)
        node.fleet.write(1)
        waiting = asyncio.ensure_future(ana.fetch(wait_ms=20_000, min_bytes=10 * size))
        await asyncio.sleep(0.02)
        for _ in range(8):
            node.fleet.write(1)
            await asyncio.sleep(0.005)
        assert len(reads) == 1 and not waiting.done()
        node.fleet.write(1)
        assert acquired(await waiting) == [(3, 32, 1)]
        assert len(reads) == 2

    with_node(test, tmp_path)


def test_of_many_small_batches_a_few_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(node: ShareNode) -> None:
        parsed = list[int]()
        plain = Chunk.batches

        def counted(chunk: Chunk, batches_max: int) -> Any:
            for batch in plain(chunk, batches_max):
                parsed.append(batch.first)
                yield batch

        monkeypatch.setattr(Chunk, "batches", counted)
        node.fleet.write(1, BATCHES_MAX + 50)  # of three records each
        ana = ShareMember(node, "ana")
        assert acquired(await ana.fetch(0, records=1)) == [(0, 2, 1)]
        assert len(parsed) <= 2
        parsed.clear()
        spans = acquired(await ana.fetch(records=2**31 - 1, batch_size=2**31 - 1))
        assert len(parsed) <= BATCHES_MAX and spans[-1][1] <= 3 * (BATCHES_MAX + 1)

    with_node(test, tmp_path)
