"""What leaders and followers refuse of each other, over real gRPC."""

import asyncio
import logging

import pytest
from ottla.errors import Code
from ottla.metadata.model.changes import compare
from ottla.replica.streams import StreamLost
from ottla.rpc import replication
from ottla.rpc.channels import Channels
from ottla.wire import replication as frames
from support.replica_hosts import CLUSTER, HostFleet, assert_equal, run, until


def test_what_does_not_fit_is_refused_on_both_sides_and_nothing_is_cut(tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.INFO, "ottla.replica")
    damage = {"left": 4}
    encode = frames.encode

    def damaged(frame):
        if isinstance(frame, frames.Data) and damage["left"]:
            damage["left"] -= 1
            entry, batches = frame.entries[0], bytearray(frame.batches[0])
            kind = damage["left"]
            if kind == 3:
                entry = entry._replace(leader_epoch=entry.leader_epoch + 7)  # of another leader
            elif kind == 2:
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
        damage["left"] = 4
        fleet.write(0, 2)
        assert await fleet.same() == 12
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)
    text = caplog.text
    for reason in ("batches of epoch 7 at 6", "wrong CRC", "batches of epoch 0 at 9", "Unexpected epoch"):
        assert sum(reason in line for line in text.splitlines()) >= 2, f"{reason} is not logged on both sides"
    assert "is cut" not in text


HELLO = frames.Hello(CLUSTER, 1, 1)


def register(fleet: HostFleet, *strangers: int) -> None:
    """Brokers that the fleet's image knows, and that are not there."""
    for broker_id in strangers:
        fleet.brokers[broker_id] = fleet.brokers[0]
        fleet.register(broker_id)
        del fleet.brokers[broker_id]


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


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (HELLO._replace(cluster_id="another"), Code.inconsistent_cluster_id),
        (HELLO._replace(broker_id=0), Code.duplicate_broker_registration),
        (HELLO._replace(version_min=7, version_max=9), Code.unsupported_version),
        (HELLO._replace(broker_id=77, version_min=7, version_max=9), Code.unsupported_version),
        (HELLO._replace(broker_id=77), Code.broker_id_not_registered),
        (HELLO._replace(broker_epoch=99), Code.stale_broker_epoch),
        (HELLO._replace(broker_epoch=-1), Code.stale_broker_epoch),
        (frames.Unfollow([1]), Code.invalid_request),
        (b"\xff not a frame", Code.invalid_request),
    ],
)
def test_a_stranger_is_refused_with_a_reason(tmp_path, said, code):
    async def test(fleet: HostFleet) -> None:
        nonlocal said
        await fleet.join(0)
        register(fleet, 1)
        if isinstance(said, frames.Hello) and said.broker_epoch == 1:
            said = said._replace(broker_epoch=fleet.image.brokers[1].epoch)
        await fleet.brokers[0].host.settled()
        (refused,) = await talk(fleet, said)
        assert isinstance(refused, frames.Refused)
        assert (refused.slot, refused.code) == (frames.STREAM_SLOT, code)
        assert refused.message

    run(test, tmp_path)


def test_a_registration_that_the_leader_hears_of_late_is_waited_for_quietly(tmp_path, caplog):
    """The follower's own image has it already: it comes again, and soon."""

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 2)
        await fleet.same()
        caplog.set_level(logging.DEBUG, "ottla.replica")
        leader, before = fleet.brokers.pop(0), fleet.image
        fleet.register(1)
        await fleet.settled()
        for stream in list(leader.host._serving):
            stream.close()
        refusals = lambda: caplog.text.count("refuses replication: broker 1 is registered with epoch")  # noqa: E731
        await until(lambda: refusals() >= 5, "the follower goes on trying")
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
        leader.host.image_moved(before, fleet.image, compare(before, fleet.image))
        fleet.brokers[0] = leader
        fleet.write(0)
        begun = asyncio.get_running_loop().time()
        await fleet.same()
        assert asyncio.get_running_loop().time() - begun < 2

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
        register(fleet, 1, 2)
        await fleet.create("orders", (0, 1))
        await fleet.elect("orders", 0, 0)
        topic = fleet.image.topics["orders"].id.bytes
        follow = frames.Follow(1, topic, 0, leader_epoch=1, end=0, last_epoch=-1, start=0)._replace(**changes)
        hello = frames.Hello(CLUSTER, broker, fleet.image.brokers[broker].epoch)
        _, refused = await talk(fleet, hello, frames.Follows([follow]))
        assert (refused.slot, Code(refused.code)) == (1, code)

    run(test, tmp_path)
