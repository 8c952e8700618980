"""Transactions on a leader and its followers: the same is stable and aborted on all, also after another one leads."""

import asyncio
from pathlib import Path

from ottla.replica.partition import Partition
from ottla.wire.markers import Marker
from support.logs import T0, make_batch
from support.replica_hosts import HostFleet, until

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


async def replicas(fleet: HostFleet, *ids: int) -> list[Partition]:
    found = []
    for broker_id in ids:
        partition = fleet.brokers[broker_id].host.find(TOPIC, 0)
        assert partition is not None
        found.append(partition)
    return found


def test_followers_know_what_is_stable_and_aborted(tmp_path: Path) -> None:
    async def run() -> None:
        async with HostFleet(tmp_path) as fleet:
            await fleet.join(0, 1)
            await fleet.create(TOPIC, (0, 1))
            leader, follower = await replicas(fleet, 0, 1)
            write(leader)
            leader.write_marker(Marker(9, 0, 0, False))
            write(leader, sequence=2)
            await until(lambda: follower.high_watermark == 5)
            assert facts(leader) == facts(follower) == (3, 5, [(9, 0)])
            leader.write_marker(Marker(9, 1, 0, True))
            await until(lambda: follower.high_watermark == 6)
            assert facts(leader) == facts(follower) == (6, 6, [(9, 0)])

    asyncio.run(run())


def test_the_next_leader_ends_what_the_last_one_began(tmp_path: Path) -> None:
    async def run() -> None:
        async with HostFleet(tmp_path) as fleet:
            await fleet.join(0, 1)
            await fleet.create(TOPIC, (0, 1))
            first, second = await replicas(fleet, 0, 1)
            write(first)
            await until(lambda: second.high_watermark == 2)
            await fleet.elect(TOPIC, 0, leader=1)
            assert second.log.producers.in_transaction(9, 0), "later batches need no further verification"
            second.append(make_batch(2, producer=(9, 0, 2), transactional=True), acks_all=False)
            second.write_marker(Marker(9, 0, 1, False))
            await until(lambda: first.high_watermark == 5)
            assert facts(first) == facts(second) == (5, 5, [(9, 0)])

    asyncio.run(run())


def test_what_only_the_last_leader_had_is_taken_back(tmp_path: Path) -> None:
    """A marker and a new transaction that never reached the follower: cut off, and undecided again."""

    async def run() -> None:
        async with HostFleet(tmp_path) as fleet:
            await fleet.join(0, 1)
            await fleet.create(TOPIC, (0, 1))
            first, second = await replicas(fleet, 0, 1)
            write(first)
            await until(lambda: second.high_watermark == 2)
            await fleet.leave(1)
            first.append(make_batch(2, producer=(9, 0, 2), transactional=True), acks_all=False)
            first.write_marker(Marker(9, 0, 0, False))
            assert first.log.last_stable_offset == 5 and first.last_stable_offset == 0
            await fleet.join(1)
            await fleet.elect(TOPIC, 0, leader=1)
            (second,) = await replicas(fleet, 1)
            second.write_marker(Marker(9, 0, 1, True))
            await until(lambda: first.high_watermark == 3)
            assert facts(first) == facts(second) == (3, 3, [])
            assert not len(first.log.active.aborted)

    asyncio.run(run())
