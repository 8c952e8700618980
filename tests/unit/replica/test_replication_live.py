"""Replication between hosts in one process: real logs, real gRPC, real decisions of the controller."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.commands import AlterPartition
from ottla.metadata.records import partition_change_record
from ottla.replica import sending
from ottla.replica.nearest import nearest
from ottla.replica.streams import StreamLost
from ottla.rpc import replication
from ottla.rpc.channels import Channels
from ottla.storage.log import Log
from ottla.system import RealDisk
from ottla.wire import replication as frames
from support.logs import make_batch
from support.replica_hosts import CLUSTER, HostFleet, file_bytes, until

SHORT_LAG = {"replica_lag_time_max_ms": "300", "replica_fetch_wait_max_ms": "100"}


def run(test: Callable[[HostFleet], Awaitable[None]], folder: Path, **settings: str) -> None:
    async def main() -> None:
        async with HostFleet(folder, **settings) as fleet:
            await test(fleet)

    asyncio.run(main())


def assert_equal(fleet: HostFleet, *brokers: int, topic: str = "orders", index: int = 0) -> None:
    first, *others = (file_bytes(fleet.partition(each, topic, index)) for each in brokers)
    assert first, "nothing was written"
    assert all(other == first for other in others)


def leave_alone(fleet: HostFleet, broker_id: int, topic: str = "orders") -> None:
    """Append what no follower will ever get: the broker's streams are cut first."""
    for stream in list(fleet.brokers[broker_id].host._serving):
        stream.close()
    fleet.partition(broker_id, topic).copies.clear()


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
        streams = {copy.outgoing for each in (0, 1) for one in fleet.brokers[each].host for copy in one.copies.values()}
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


def test_an_old_leader_gives_up_what_was_never_committed(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        fleet.write(0, 10)
        await fleet.same()
        fleet.fence(0)
        leave_alone(fleet, 0)
        fleet.partition(0).log.append(make_batch(5, producer=(8, 0, 0)), leader_epoch=0)
        await fleet.elect("orders", 0, 1, isr=(1, 2))
        fleet.write(1, 4)
        assert await fleet.same() == 42
        assert_equal(fleet, 0, 1, 2)
        epochs = [fleet.partition(each).log.epochs.entries for each in (0, 1, 2)]
        assert epochs == [((0, 0), (1, 30))] * 3
        assert 8 not in fleet.partition(0).log.producers.by_id
        fleet.fence(0, fenced=False)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1, 2})

    run(test, tmp_path)


def test_leaders_change_back_and_forth_under_writes(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        committed = []
        for turn in range(9):
            leader = turn % 3
            await fleet.elect("orders", 0, leader)
            last = fleet.write(leader, 3)
            await asyncio.wait_for(fleet.partition(leader).committed(last) or asyncio.sleep(0), 10)
            committed.append(last)
            fleet.write(leader, 1)  # may be lost
        await fleet.same()
        assert_equal(fleet, 0, 1, 2)
        assert all(fleet.partition(each).log.end_offset > committed[-1] for each in (0, 1, 2))
        assert len(fleet.partition(0).log.epochs.entries) == 9

    run(test, tmp_path)


def test_an_epoch_without_records_does_not_confuse_the_next_leader(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 2)
        await fleet.same()
        await fleet.elect("orders", 0, 1)
        await fleet.elect("orders", 0, 0)
        fleet.write(0, 2)
        assert await fleet.same() == 12
        assert fleet.partition(1).log.epochs.entries == ((0, 0), (2, 6))

    run(test, tmp_path)


def test_a_follower_that_stays_away_leaves_the_in_sync_set_and_comes_back(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        fleet.write(0, 3)
        await fleet.same()
        await fleet.leave(2)
        last = fleet.write(0, 3)
        commit = fleet.partition(0).committed(last)
        assert commit is not None and not commit.done()
        await asyncio.wait_for(commit, 10)
        assert fleet.state("orders").isr == (0, 1)
        await fleet.join(2)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1, 2})
        await fleet.same()
        assert_equal(fleet, 0, 1, 2)

    run(test, tmp_path, **SHORT_LAG)


def test_a_fenced_broker_joins_only_with_its_new_epoch(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.fence(1)
        fleet.apply(partition_change_record(fleet.image.topics["orders"].id, 0, isr=(0,)))
        fleet.write(0, 3)
        await until(lambda: fleet.partition(1).log.end_offset == 9)
        assert fleet.state("orders").isr == (0,)
        fleet.register(1)
        await until(lambda: set(fleet.state("orders").isr) == {0, 1})
        epoch = fleet.image.brokers[1].epoch
        changes = [change for asked in fleet.asked if isinstance(asked, AlterPartition) for change in asked.partitions]
        assert dict(changes[-1].isr)[1] == epoch

    run(test, tmp_path)


def test_below_min_insync_replicas_nothing_is_taken_or_committed(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1), min_insync_replicas="2")
        fleet.write(0, 3)
        await fleet.same()
        await fleet.leave(1)
        last = fleet.write(0, 1)
        commit = fleet.partition(0).committed(last)
        await until(lambda: fleet.state("orders").isr == (0,))
        await fleet.settled()
        assert commit is not None and not commit.done()
        assert fleet.partition(0).high_watermark == 9
        with pytest.raises(KafkaError) as refusal:
            fleet.write(0, 1)
        assert refusal.value.code == Code.not_enough_replicas
        fleet.partition(0).append(make_batch(1, timestamp=-1), acks_all=False)
        assert fleet.partition(0).high_watermark == 9
        await fleet.join(1)
        await asyncio.wait_for(commit, 10)
        assert await fleet.same() == 13

    run(test, tmp_path, **SHORT_LAG)


def test_while_a_change_is_under_way_the_larger_set_counts(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 1)
        await fleet.same()
        may_decide = asyncio.Event()

        async def hold(command: object) -> None:
            await may_decide.wait()

        fleet.controlled = hold
        await fleet.leave(1)
        commit = fleet.partition(0).committed(fleet.write(0, 1))
        await until(lambda: any(isinstance(asked, AlterPartition) for asked in fleet.asked))
        assert fleet.partition(0).view.pending == {0}
        assert not commit.done() and fleet.partition(0).high_watermark == 3
        may_decide.set()
        await asyncio.wait_for(commit, 10)

    run(test, tmp_path, **SHORT_LAG)


def test_a_controller_that_cannot_answer_is_asked_again(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        await fleet.leave(1)
        fleet.write(0, 1)
        refusals = [KafkaError(Code.not_controller), KafkaError(Code.request_timed_out), RuntimeError("broken")]

        async def refuse(command: object) -> None:
            if refusals:
                raise refusals.pop()

        fleet.controlled = refuse
        await until(lambda: fleet.state("orders").isr == (0,))
        await until(lambda: fleet.partition(0).high_watermark == 3)

    run(test, tmp_path, **SHORT_LAG)


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


def test_a_follower_whose_end_the_leader_has_deleted_begins_anew(tmp_path):
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


def test_what_does_not_fit_is_refused_on_both_sides_and_nothing_is_cut(tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.INFO, "ottla.replica")
    damage = {"left": 3}
    encode = frames.encode

    def damaged(frame):
        if isinstance(frame, frames.Data) and damage["left"]:
            damage["left"] -= 1
            entry, batches = frame.entries[0], bytearray(frame.batches[0])
            kind = damage["left"]
            if kind == 2:
                batches[-1] ^= 1  # CRC
            elif kind == 1:
                entry = entry._replace(base_offset=entry.base_offset + 3)  # a gap
            else:
                batches[12:16] = (99).to_bytes(4, "big")  # a leader epoch from the future
            frame = frames.Data([entry, *frame.entries[1:]], [bytes(batches), *frame.batches[1:]])
        return encode(frame)

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        damage["left"] = 0
        fleet.write(0, 2)
        await fleet.same()
        monkeypatch.setattr(frames, "encode", damaged)
        damage["left"] = 3
        fleet.write(0, 2)
        assert await fleet.same() == 12
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)
    text = caplog.text
    for reason in ("wrong CRC", "do not fit orders-0", "Unexpected epoch"):
        assert sum(reason in line for line in text.splitlines()) >= 2, f"{reason} is not told on both sides"
    assert "is cut" not in text


async def talk(fleet: HostFleet, *said: frames.Frame | bytes) -> list[frames.Frame]:
    """Say something to broker 0 as a follower would, and hear it until it says no more."""
    channels = Channels()
    stream = replication.connector(channels)(f"127.0.0.1:{fleet.brokers[0].port}")
    heard: list[frames.Frame] = []
    try:
        for frame in said:
            await stream.send(frame if isinstance(frame, bytes) else frames.encode(frame))
        while not heard or not isinstance(heard[-1], frames.Refused):
            answer = await asyncio.wait_for(stream.receive(), 10)
            if answer is None:
                break
            heard.append(frames.decode(answer))
    except StreamLost:
        pass
    finally:
        stream.close()
        await channels.close()
    return heard


HELLO = frames.Hello(CLUSTER, 1, 1)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (HELLO._replace(cluster_id="another"), Code.inconsistent_cluster_id),
        (HELLO._replace(broker_id=0), Code.duplicate_broker_registration),
        (HELLO._replace(version_min=7, version_max=9), Code.unsupported_version),
        (frames.Unfollow([1]), Code.invalid_request),
        (b"\xff not a frame", Code.invalid_request),
    ],
)
def test_a_stranger_is_refused_with_a_reason(tmp_path, said, code):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0)
        (refused,) = await talk(fleet, said)
        assert isinstance(refused, frames.Refused)
        assert (refused.slot, refused.code) == (frames.STREAM_SLOT, code)
        assert refused.message

    run(test, tmp_path)


@pytest.mark.parametrize(
    ("changes", "broker", "code"),
    [
        ({"leader_epoch": 5}, 1, Code.unknown_leader_epoch),
        ({"leader_epoch": 0}, 1, Code.fenced_leader_epoch),
        ({"partition": 9}, 1, Code.unknown_topic_or_partition),
        ({"topic_id": bytes(16)}, 1, Code.unknown_topic_or_partition),
        ({}, 2, Code.not_leader_or_follower),
    ],
)
def test_only_replicas_in_the_right_epoch_may_follow(tmp_path, changes, broker, code):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0)
        fleet.brokers[1] = fleet.brokers[0]
        fleet.register(1)
        del fleet.brokers[1]
        await fleet.create("orders", (0, 1))
        await fleet.elect("orders", 0, 0)
        topic = fleet.image.topics["orders"].id.bytes
        follow = frames.Follow(1, topic, 0, leader_epoch=1, end=0, last_epoch=-1, start=0)._replace(**changes)
        _, refused = await talk(fleet, HELLO._replace(broker_id=broker), frames.Follows([follow]))
        assert (refused.slot, Code(refused.code)) == (1, code)

    run(test, tmp_path)


def test_a_new_leader_does_not_know_what_is_committed_at_once(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 2)
        await fleet.same()
        await fleet.leave(0)
        fleet.partition(1).log.append(make_batch(3), leader_epoch=0)
        await fleet.elect("orders", 0, 1)
        view = fleet.partition(1).view
        assert view is not None and not view.is_settled
        await fleet.join(0)
        await until(lambda: view.is_settled)
        assert await fleet.same() == 9

    run(test, tmp_path)


def test_a_consumer_is_sent_to_the_follower_in_its_rack(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2, racks={0: "a", 1: "b", 2: "b"})
        await fleet.create("orders", (0, 1, 2))
        fleet.write(0, 2)
        await fleet.same()

        def choice(rack: str, offset: int = 0) -> int:
            return nearest(fleet.partition(0), offset=offset, rack=rack, image=fleet.brokers[0].host.image)

        chosen = choice("b")
        assert chosen in (1, 2)
        assert [choice("a"), choice("c"), choice("b", offset=99)] == [-1, -1, -1]
        fleet.fence(chosen)
        await fleet.settled()
        assert choice("b") == 3 - chosen

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
