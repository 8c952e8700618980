"""Replication between hosts in one process: real logs, real gRPC, real decisions of the controller."""

import asyncio

import pytest
from ottla.metadata.model.records import partition_change_record
from ottla.replica import sending
from ottla.storage.log.log import Log
from ottla.system import RealDisk
from support.replica_hosts import SHORT_LAG, HostFleet, assert_equal, leave_alone, run, until


def test_followers_copy_what_the_leader_has_and_acks_all_waits_for_them(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        last = fleet.write(0, 10)
        commit = fleet.partition(0).committed(last)
        assert commit is not None, "committed before any follower could have it"
        await asyncio.wait_for(commit, 10)
        assert all(fleet.partition(each).log.end_offset == last + 1 for each in (1, 2))
        assert await fleet.same() == last + 1
        assert_equal(fleet, 0, 1, 2)
        assert fleet.state("orders").isr == (0, 1, 2)

    run(test, tmp_path)


def test_many_partitions_share_the_streams_in_both_directions(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", *[(0, 1), (1, 0)] * 20)
        for number in range(400):
            fleet.write(number % 2, index=number % 40, size=200 + number)
        for index in range(40):
            assert await fleet.same(index=index) == 30
            assert_equal(fleet, 0, 1, index=index)
        hosted = [one for each in (0, 1) for one in fleet.brokers[each].host]
        streams = {copy.outgoing for one in hosted for copy in one._copies.values()}
        assert len(streams) == 2

    run(test, tmp_path)


def test_more_than_the_credit_flows_and_is_never_exceeded(tmp_path, monkeypatch):
    monkeypatch.setattr(sending, "UNACKED_BYTES_MAX", 200_000)
    monkeypatch.setattr(sending, "MESSAGE_BYTES", 100_000)
    most = 0
    build = sending.Outgoing._data

    def watched(stream):
        nonlocal most
        data = build(stream)
        most = max(most, stream._sent_bytes - stream._received_bytes)
        return data

    monkeypatch.setattr(sending.Outgoing, "_data", watched)

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), (0, 1))
        for _ in range(100):
            fleet.write(0, size=10_000)
            fleet.write(0, index=1, size=10_000)
        await fleet.same()
        await fleet.same(index=1)
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)
    assert 200_000 <= most < 300_000


def test_a_batch_larger_than_a_message_passes_whole(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), max_message_bytes="8000000")
        fleet.write(0, size=20)
        fleet.write(0, size=1_500_000)
        fleet.write(0, size=20)
        assert await fleet.same() == 9
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)


def test_a_broken_stream_is_opened_again_and_nothing_is_missing(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 5)
        await fleet.same()
        for _ in range(5):
            leave_alone(fleet, 0)
            fleet.write(0, 5)
            await fleet.same()
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)


def test_a_follower_far_behind_reads_what_is_not_in_memory(tmp_path, monkeypatch):
    cold = 0
    read_cold = Log.read_cold

    def counted(log, **span):
        nonlocal cold
        cold += 1
        return read_cold(log, **span)

    monkeypatch.setattr(Log, "read_cold", counted)

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), segment_bytes="1048576")
        await fleet.leave(1)
        fleet.write(0, 500, size=10_000)
        fleet.write(0, 1, size=20)
        await fleet.join(1)
        assert await fleet.same() == 1503
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)
    assert cold > 0


def test_the_log_start_follows_the_leaders(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 4)
        await fleet.same()
        leader = fleet.partition(0)
        leader.delete_before(5)
        assert leader.low_watermark == 0
        await asyncio.wait_for(leader.deleted_everywhere(5) or asyncio.sleep(0), 10)
        assert (leader.low_watermark, fleet.partition(1).log.start_offset) == (5, 5)

    run(test, tmp_path)


def test_a_follower_whose_end_the_leader_has_deleted_starts_over(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), segment_bytes="14000")
        fleet.write(0, 2)
        await fleet.same()
        await fleet.leave(1)
        fleet.write(0, 30, size=1000)
        await until(lambda: fleet.partition(0).high_watermark == 96)
        fleet.partition(0).delete_before(50)  # in the middle of a batch
        await fleet.join(1)
        await fleet.same()
        copy = fleet.partition(1).log
        assert (copy.start_offset, copy.end_offset) == (50, 96)
        leader = fleet.partition(0).log
        whole = {"start": 50, "end": 96, "size_bytes_max": 1 << 20, "whole_first": True}
        assert copy.read_cold(**{**whole, "start": 95}) == leader.read_cold(**{**whole, "start": 95})
        assert copy.read_cold(**whole)[:500] == leader.read_cold(**whole)[:500]

    run(test, tmp_path, **SHORT_LAG)


def test_acks_of_a_topic_with_flush_messages_wait_for_both_disks(tmp_path, monkeypatch):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), flush_messages="1")
        last = fleet.write(0, 2)
        await asyncio.wait_for(fleet.partition(0).committed(last) or asyncio.sleep(0), 10)
        assert [fleet.partition(each).log.flushed_offset for each in (0, 1)] == [6, 6]

    run(test, tmp_path)


def test_a_replica_that_moved_away_is_removed(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 2)
        await fleet.same()
        topic = fleet.image.topics["orders"].id
        fleet.apply(partition_change_record(topic, 0, replicas=(0,), isr=(0,)))
        await fleet.settled()
        assert fleet.brokers[1].host.find("orders", 0) is None
        assert not RealDisk().exists(str(tmp_path / "1" / "orders-0"))
        fleet.write(0, 1)
        assert fleet.partition(0).high_watermark == 9

    run(test, tmp_path)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_replica_is_copied_slowly_until_it_is_in_sync(tmp_path, side):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), (0, 1))
        await fleet.leave(1)
        fleet.write(0, 1)
        fleet.write(0, 1000, size=1000)
        fleet.write(0, 1, index=1)
        await until(lambda: [fleet.state("orders", index).isr for index in (0, 1)] == [(0,), (0,)])
        broker = "0" if side == "leader" else "1"
        fleet.configure("orders", f"{side}.replication.throttled.replicas", f"0:{broker}")
        fleet.configure_broker(broker, f"{side}.replication.throttled.rate", "100000")
        await fleet.join(1)
        await fleet.same(index=1)
        await until(lambda: fleet.partition(1).log.end_offset > 0)
        assert fleet.partition(1).log.end_offset < fleet.partition(0).log.end_offset
        fleet.configure_broker(broker, f"{side}.replication.throttled.rate", "100000000")
        await fleet.same()
        await until(lambda: set(fleet.state("orders").isr) == {0, 1})

    run(test, tmp_path, **SHORT_LAG)
