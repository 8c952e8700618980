"""The leader's end of a replication stream: one follower broker, and all partitions that it copies from this one.

Here is the protocol; `sending` chooses what is sent in which order.
"""

import asyncio
import contextlib
import logging
from typing import Protocol

from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.replica.partition import Partition
from ottla.replica.sending import Outgoing
from ottla.replica.streams import Stream, StreamLost
from ottla.replica.throttling import Throttles
from ottla.wire import replication as frames
from ottla.wire.replication import STREAM_SLOT, Follow, Frame, Hello, Refused

__all__ = ["LeaderHost", "LeaderStream"]

log = logging.getLogger("ottla.replica")


class LeaderHost(Protocol):
    """What the stream needs of the host."""

    node_id: int
    throttles: Throttles

    @property
    def cluster_id(self) -> str: ...
    @property
    def image(self) -> Image: ...
    def find(self, topic: str | bytes, index: int) -> Partition | None: ...
    def follower_progressed(self, partition: Partition) -> None:
        """The follower may now be in sync."""


class LeaderStream:
    def __init__(self, stream: Stream, host: LeaderHost) -> None:
        self._stream = stream
        self._host = host
        self._hello: Hello
        self._outgoing: Outgoing

    async def run(self) -> None:
        """Serve until the follower leaves or the stream breaks."""
        try:
            if await self._handshake():
                await self._serve()
        except StreamLost as lost:
            log.info("the stream of a follower ended: %s", lost)
        except frames.BadFrame as bad:
            log.error("a replication stream is refused: %s", bad)
            await self._refuse_stream(Code.invalid_request, str(bad))
        finally:
            self._stream.close()

    async def _handshake(self) -> bool:
        first = await self._stream.receive()
        if first is None:
            return False
        hello = frames.decode(first)
        if not isinstance(hello, Hello):
            raise frames.BadFrame(f"a stream begins with Hello, not with {type(hello).__name__}")
        self._hello = hello
        version = frames.common_version(hello)
        if (refusal := self._refusal(hello, version)) is not None:
            level = logging.DEBUG if refusal.code in frames.BEHIND else logging.ERROR
            log.log(level, "broker %d is refused: %s", hello.broker_id, refusal)
            await self._refuse_stream(refusal.code, str(refusal))
            return False
        assert version is not None
        await self._stream.send(frames.encode(frames.Welcome(version, self._host.node_id)))
        return True

    def _refusal(self, hello: Hello, version: int | None) -> KafkaError | None:
        if hello.cluster_id != self._host.cluster_id:
            text = f"this broker belongs to cluster {self._host.cluster_id}, the follower to {hello.cluster_id}"
            return KafkaError(Code.inconsistent_cluster_id, text)
        if hello.broker_id == self._host.node_id:
            return KafkaError(Code.duplicate_broker_registration, f"broker id {hello.broker_id} is this broker's own")
        if version is None:
            text = (
                f"the follower speaks replication {hello.version_min} to {hello.version_max}, "
                f"this broker {frames.VERSION_MIN} to {frames.VERSION_MAX}"
            )
            return KafkaError(Code.unsupported_version, text)
        return self._absence(hello)

    def _absence(self, hello: Hello) -> KafkaError | None:
        """Only registered brokers of the fleet may copy, with the registration that this broker knows.

        Either side may learn of a registration first: a follower that is ahead of this broker, or behind, retries.
        """
        broker = self._host.image.brokers.get(hello.broker_id)
        if broker is None:
            return KafkaError(Code.broker_id_not_registered, f"broker {hello.broker_id} is not registered")
        if broker.epoch != hello.broker_epoch:
            text = f"broker {hello.broker_id} is registered with epoch {broker.epoch}, not {hello.broker_epoch}"
            return KafkaError(Code.stale_broker_epoch, text)
        return None

    async def _refuse_stream(self, code: Code, message: str) -> None:
        with contextlib.suppress(StreamLost):
            await self._stream.send(frames.encode(Refused(STREAM_SLOT, code, message)))

    async def _serve(self) -> None:
        self._outgoing = Outgoing(self._hello.broker_id, self._host.throttles)
        sending = asyncio.ensure_future(self._send_all())
        try:
            while (frame := await self._stream.receive()) is not None:
                self._receive(frames.decode(frame))
        finally:
            self._outgoing.close()
            sending.cancel()
            await asyncio.wait([sending])

    async def _send_all(self) -> None:
        try:
            while True:
                await self._outgoing.awake.wait()
                self._outgoing.awake.clear()
                for frame in self._outgoing.frames():
                    await self._stream.send(frame)
        except StreamLost:
            self._stream.close()  # the receiving side gets the end of the stream
        except Exception:
            log.exception("sending to broker %d failed", self._hello.broker_id)
            self._stream.close()

    # receiving

    def _receive(self, frame: Frame) -> None:
        match frame:
            case frames.Ack(received_bytes, items):
                for slot, end, start in items:
                    self._acked(slot, end, start)
                self._outgoing.received(received_bytes)
            case frames.Follows(items):
                for follow in items:
                    self._follow(follow)
            case frames.Unfollow(slots):
                for number in slots:
                    self._forget(number)
            case Refused(number, code, message):
                log.error("broker %d refuses batches: %s (%s)", self._hello.broker_id, message, Code(code).name)
                self._forget(number)
            case Hello():
                self._registered_again(frame)
            case _:
                raise frames.BadFrame(f"{type(frame).__name__} does not come from a follower")

    def _acked(self, number: int, end: int, start: int) -> None:
        slot = self._outgoing.slots.get(number)
        if slot is not None and end <= slot.sent:
            hello = self._hello
            slot.partition.acked(hello.broker_id, end=end, start=start, broker_epoch=hello.broker_epoch)
            self._host.follower_progressed(slot.partition)

    def _registered_again(self, hello: Hello) -> None:
        """The same broker with a new epoch: its positions stay valid, and it may now be eligible for the in-sync
        set."""
        if hello.broker_id != self._hello.broker_id:
            raise frames.BadFrame(f"broker {self._hello.broker_id} cannot become {hello.broker_id}")
        self._hello = hello
        for slot in list(self._outgoing.slots.values()):
            view = slot.partition.view
            follower = view.follower(hello.broker_id) if view is not None else None
            if follower is not None:
                self._acked(slot.number, follower.end, follower.start)

    def _follow(self, follow: Follow) -> None:
        partition = self._host.find(follow.topic_id, follow.partition)
        try:
            if partition is None:
                raise KafkaError(Code.unknown_topic_or_partition, "this broker does not have the partition")
            partition.require_leader(follow.leader_epoch)
            self._require_replica(partition)
        except KafkaError as error:
            self._outgoing.enqueue(Refused(follow.slot, error.code, str(error)))
            return
        if (apart := _divergence(partition, follow)) is not None:
            self._outgoing.enqueue(apart)
            return
        self._outgoing.add(partition, follow)
        self._acked(follow.slot, follow.end, follow.start)

    def _require_replica(self, partition: Partition) -> None:
        view = partition.view
        if view is None or view.follower(self._hello.broker_id) is None:
            text = f"broker {self._hello.broker_id} is not a replica of {partition}"
            raise KafkaError(Code.not_leader_or_follower, text)

    def _forget(self, number: int) -> None:
        if (slot := self._outgoing.slots.get(number)) is not None:
            self._outgoing.drop(slot)


def _divergence(partition: Partition, follow: Follow) -> frames.Diverged | frames.StartAt | None:
    """Where the follower's log diverges from this one; None if it is a prefix."""
    leader = partition.log
    if follow.end < leader.start_offset:
        return frames.StartAt(follow.slot, partition.leader_epoch, leader.start_offset)
    if follow.last_epoch < 0:
        if follow.end <= leader.end_offset:
            return None
        return frames.Diverged(follow.slot, partition.leader_epoch, -1, leader.end_offset)
    epoch, end = leader.epochs.end_offset_for(follow.last_epoch, leader.end_offset)
    if epoch < follow.last_epoch or end < follow.end:
        return frames.Diverged(follow.slot, partition.leader_epoch, epoch, end)
    return None
