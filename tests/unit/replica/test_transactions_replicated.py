"""Transactions on a leader and its followers: the same is stable and aborted on all, also after another one leads."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from ottla.replica.partition import Partition
from ottla.wire.markers import Marker
from support.logs import T0, make_batch
from support.replica_hosts import HostFleet, run, until

TOPIC = "orders"


def write(partition: Partition, *, sequence: int = 0, epoch: int = 0) -> None:
    batch = make_batch(2, producer=(9, epoch, sequence), transactional=True)
    ticket = partition.log.producers.verifications.begin_for(batch, adds_partitions=False, now_ms=T0)
    partition.append(batch, acks_all=False, ticket=ticket)


def facts(partition: Partition) -> tuple[int, int, list[tuple[int, int]]]:
    """Last stable offset, high watermark, and the aborted transactions up to there."""
    end = partition.last_stable_offset
    found = partition.log.read_slice_cold(start=0, end=end, size_bytes_max=1 << 20, whole_first=True)
    return end, partition.high_watermark, list(found.aborted)


Test = Callable[[HostFleet, Partition, Partition], Awaitable[None]]


@pytest.fixture
def on_leader_and_follower(tmp_path: Path) -> Callable[[Test], None]:
    """Runs a test with a topic whose partition broker 0 leads and broker 1 follows."""

    async def prepared(fleet: HostFleet, test: Test) -> None:
        await fleet.join(0, 1)
        await fleet.create(TOPIC, (0, 1))
        await test(fleet, fleet.partition(0, TOPIC), fleet.partition(1, TOPIC))

    return lambda test: run(lambda fleet: prepared(fleet, test), tmp_path)


def test_followers_know_what_is_stable_and_aborted(on_leader_and_follower: Callable[[Test], None]) -> None:
    async def test(fleet: HostFleet, leader: Partition, follower: Partition) -> None:
        write(leader)
        leader.write_marker(Marker(9, 0, 0, False))
        write(leader, sequence=2)
        await until(lambda: follower.high_watermark == 5)
        assert facts(leader) == facts(follower) == (3, 5, [(9, 0)])
        leader.write_marker(Marker(9, 1, 0, True))
        await until(lambda: follower.high_watermark == 6)
        assert facts(leader) == facts(follower) == (6, 6, [(9, 0)])

    on_leader_and_follower(test)


def test_the_next_leader_ends_what_the_last_one_began(on_leader_and_follower: Callable[[Test], None]) -> None:
    async def test(fleet: HostFleet, first: Partition, second: Partition) -> None:
        write(first)
        await until(lambda: second.high_watermark == 2)
        await fleet.elect(TOPIC, 0, leader=1)
        assert second.log.producers.in_transaction(9, 0), "later batches need no further verification"
        second.append(make_batch(2, producer=(9, 0, 2), transactional=True), acks_all=False)
        second.write_marker(Marker(9, 0, 1, False))
        await until(lambda: first.high_watermark == 5)
        assert facts(first) == facts(second) == (5, 5, [(9, 0)])

    on_leader_and_follower(test)


def test_what_only_the_last_leader_had_is_taken_back(on_leader_and_follower: Callable[[Test], None]) -> None:
    """A marker and a new transaction that never reached the follower: cut off, and undecided again."""

    async def test(fleet: HostFleet, first: Partition, second: Partition) -> None:
        write(first)
        await until(lambda: second.high_watermark == 2)
        await fleet.leave(1)
        first.append(make_batch(2, producer=(9, 0, 2), transactional=True), acks_all=False)
        first.write_marker(Marker(9, 0, 0, False))
        assert first.log.last_stable_offset == 5 and first.last_stable_offset == 0
        await fleet.join(1)
        await fleet.elect(TOPIC, 0, leader=1)
        second = fleet.partition(1, TOPIC)
        second.write_marker(Marker(9, 0, 1, True))
        await until(lambda: first.high_watermark == 3)
        assert facts(first) == facts(second) == (3, 3, [])
        assert not len(first.log.active.aborted)

    on_leader_and_follower(test)
