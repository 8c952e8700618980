"""ShareFetch and ShareAcknowledge over real logs: kio's requests in, kio reads the answers."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from ottla.share.messages import Delivery, ShareKey, StateBatch
from ottla.wire import records
from ottla.wire.batch import iterate
from support.logs import T0, make_batch, make_marker
from support.replica_hosts import HostFleet, run, until
from support.share_clients import GROUP, ShareMember, ShareNode, acquired, parts_of

GAP, ACCEPT, RELEASE, REJECT = range(4)
Test = Callable[[ShareNode], Awaitable[None]]


def with_node(test: Test, folder: Path, *, partitions: int = 1, brokers: tuple[int, ...] = (1,)) -> None:
    """A broker that leads every partition of `orders`; a group begins where the log does."""

    async def main(fleet: HostFleet) -> None:
        await fleet.join(*brokers)
        await fleet.create("orders", *([brokers] * partitions))
        node = ShareNode(fleet, brokers[0])
        node.turn_on()
        node.set_group("share.auto.offset.reset", "earliest")
        await fleet.settled()
        try:
            await test(node)
        finally:
            await node.shares.stop()

    run(main, folder, group_share_min_record_lock_duration_ms="1000")


def key_of(node: ShareNode, index: int = 0) -> ShareKey:
    return ShareKey(GROUP, node.image.topics["orders"].id, index)


async def opened(node: ShareNode, name: str, **fields: int) -> ShareMember:
    member = ShareMember(node, name)
    await member.fetch(0, records=0, **fields)
    return member


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


def test_not_before_it_is_turned_on(tmp_path: Path) -> None:
    async def main(fleet: HostFleet) -> None:
        await fleet.join(1)
        await fleet.create("orders", (1,))
        with pytest.raises(KafkaError) as caught:
            await ShareMember(ShareNode(fleet, 1), "ana").fetch(0)
        assert caught.value.code is Code.unsupported_version

    run(main, tmp_path)


def test_sessions(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        async def refusal(asking: Awaitable[object]) -> Code:
            with pytest.raises(KafkaError) as caught:
                await asking
            return caught.value.code

        ana = ShareMember(node, "ana")
        assert await refusal(ana.fetch(0, epoch=1)) is Code.share_session_not_found
        assert await refusal(ana.fetch(epoch=-1)) is Code.share_session_not_found
        assert await refusal(ana.acknowledge([(0, 0, (ACCEPT,))], epoch=0)) is Code.invalid_share_session_epoch
        assert await refusal(ana.fetch(epoch=0, acknowledge={0: [(0, 0, (1,))]})) is Code.invalid_request
        await ana.fetch(0)
        assert await refusal(ana.fetch(epoch=2)) is Code.invalid_share_session_epoch
        assert await refusal(ana.acknowledge([(0, 0, (ACCEPT,))], epoch=2)) is Code.invalid_share_session_epoch
        await ana.fetch(0)
        node.fleet.configure_broker("", "group.share.max.share.sessions", "1")
        assert await refusal(ShareMember(node, "ben").fetch(0)) is Code.share_session_limit_reached
        await ana.fetch(epoch=-1)
        assert await refusal(ana.fetch()) is Code.share_session_not_found

    with_node(test, tmp_path)


@pytest.mark.parametrize("how", ["last fetch", "last acknowledgement", "connection lost"])
def test_who_leaves_releases(tmp_path: Path, how: str) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 2)
        ben = await opened(node, "ben")
        ana = ShareMember(node, "ana")
        assert acquired(await ana.fetch(0)) == [(0, 5, 1)]
        if how == "connection lost":
            ana.hang_up()
        elif how == "last fetch":
            await ana.fetch(epoch=-1, acknowledge={0: [(0, 0, (ACCEPT,))]})
        else:
            await ana.acknowledge([(0, 0, (ACCEPT,))], epoch=-1)
        left = 0 if how == "connection lost" else 1
        assert acquired(await ben.fetch(wait_ms=1000)) == [(left, 5, 1)], "it counts as not delivered"
        assert len(node.shares.sessions) == 1

    with_node(test, tmp_path)


def test_a_reopened_session_may_acknowledge_what_the_last_one_fetched(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1)
        ana = ShareMember(node, "ana")
        await ana.fetch(0)
        ana.epoch = 0
        await ana.fetch(0)
        assert parts_of(await ana.acknowledge([(0, 2, (ACCEPT,))]))[0].error_code is Code.none

    with_node(test, tmp_path)


def test_with_the_last_session_the_state_is_forgotten(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        node.fleet.write(1, 2)
        ana = ShareMember(node, "ana")
        await ana.fetch(0)
        await ana.fetch(epoch=-1)
        await until(lambda: node.shares.find(GROUP, (ana.topic_id.bytes, 0)) is None)
        await node.persister.initialize(key_of(node), state_epoch=1, start=3)
        ana.epoch = 0
        assert acquired(await ana.fetch(0, wait_ms=500)) == [(3, 5, 1)], "as AlterShareGroupOffsets would have it"

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


@pytest.mark.parametrize("how", ["closed", "opened again"])
def test_a_fetch_of_a_session_that_ended_gets_nothing(tmp_path: Path, how: str) -> None:
    async def test(node: ShareNode) -> None:
        ana = await opened(node, "ana")
        ben = await opened(node, "ben")
        waiting = asyncio.ensure_future(ana.fetch(wait_ms=10_000))
        await asyncio.sleep(0.02)
        await ana.fetch(0, epoch=-1 if how == "closed" else 0, wait_ms=0)
        node.fleet.write(1)
        assert acquired(await waiting) == []
        assert acquired(await ben.fetch()) == [(0, 2, 1)]

    with_node(test, tmp_path)


def test_what_nobody_waits_for_is_not_loaded(tmp_path: Path) -> None:
    async def test(node: ShareNode) -> None:
        ana = ShareMember(node, "ana")
        fetching = asyncio.ensure_future(ana.fetch(0, wait_ms=5000))
        await asyncio.sleep(0)
        ana.hang_up()
        assert acquired(await fetching) == []
        assert node.shares.find(GROUP, (ana.topic_id.bytes, 0)) is None

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
