"""The leader's end of a replication stream: one follower broker, all the partitions that it copies from this one.

What is new is sent at once while the stream is idle; while it is busy, new batches gather and go in messages of up to
MESSAGE_BYTES. Partitions take turns. What the follower has not acknowledged is limited by UNACKED_BYTES_MAX.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Protocol

from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.replica.streams import Stream, StreamLost
from ottla.replica.throttle import TokenBucket
from ottla.replica.throttling import Throttles
from ottla.wire import replication as frames
from ottla.wire.batch import HEADER, HEADER_BYTES, OVERHEAD_BYTES
from ottla.wire.replication import STREAM_SLOT, Entry, Follow, Frame, Hello, Refused

__all__ = ["LeaderStream", "Led"]

log = logging.getLogger("ottla.replica")

MESSAGE_BYTES = 1 << 20
TURN_BYTES = 256 << 10  # of one partition in a message, while others wait or a throttle counts
UNACKED_BYTES_MAX = 16 << 20
WATERMARK_DELAY_S = 0.005  # a watermark alone waits this long for batches to ride with
THROTTLE_LOOK_S_MAX = 1.0  # a throttle may be lifted at any time
LENGTH_AT = 8


class Led(Protocol):
    """What the stream asks of the host."""

    node_id: int
    throttles: Throttles

    @property
    def cluster_id(self) -> str: ...
    def find(self, topic: str | bytes, index: int) -> Partition | None: ...
    def follower_came_nearer(self, partition: Partition) -> None:
        """It may now belong to the in-sync set."""


class Slot:
    """One partition on its way to one follower."""

    __slots__ = ("buckets", "cold", "epoch", "number", "partition", "reading", "sent", "stream", "told")

    def __init__(self, stream: "LeaderStream", partition: Partition, follow: Follow) -> None:
        self.stream = stream
        self.partition = partition
        self.number = follow.slot
        self.epoch = partition.leader_epoch
        self.sent = follow.end
        self.told = (-1, -1)  # high watermark, log start
        self.buckets: list[TokenBucket] = []  # that the next batches are taken from
        self.reading = False  # from the disk, in a thread
        self.cold: bytes | None = None  # batches that were read so

    @property
    def is_behind(self) -> bool:
        return self.sent < self.partition.log.end_offset

    @property
    def news(self) -> tuple[int, int]:
        return self.partition.high_watermark, self.partition.log.start_offset

    def appended(self) -> None:
        self.stream.has_more(self)

    def watermark_moved(self) -> None:
        self.stream.has_watermark(self)

    def ended(self, code: Code) -> None:
        self.stream.give_up(self, KafkaError(code, f"{self.partition} is not led in epoch {self.epoch} any longer"))


class LeaderStream:
    def __init__(self, stream: Stream, host: Led) -> None:
        self._stream = stream
        self._host = host
        self._hello: Hello
        self._slots: dict[int, Slot] = {}
        self._behind: dict[Slot, None] = {}  # in order of their turns
        self._untold: dict[Slot, None] = {}  # of a watermark
        self._first: list[Frame] = []  # to be sent before any batches
        self._sent_bytes = 0
        self._received_bytes = 0
        self._awake = asyncio.Event()
        self._watermark_timer: asyncio.TimerHandle | None = None
        self._watermarks_due = False
        self._reading: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the follower leaves or the stream breaks."""
        try:
            if await self._greet():
                await self._serve()
        except StreamLost as lost:
            log.info("the stream to broker %s ended: %s", getattr(self, "_hello", None) and self._hello.broker_id, lost)
        except frames.BadFrame as bad:
            log.error("a replication stream is refused: %s", bad)
            await self._refuse_stream(Code.invalid_request, str(bad))
        finally:
            self._close()

    async def _greet(self) -> bool:
        first = await self._stream.receive()
        if first is None:
            return False
        hello = frames.decode(first)
        if not isinstance(hello, Hello):
            raise frames.BadFrame(f"a stream begins with Hello, not with {type(hello).__name__}")
        self._hello = hello
        version = frames.common_version(hello)
        if (refusal := self._refusal(hello, version)) is not None:
            log.error("broker %d is refused: %s", hello.broker_id, refusal)
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
        return None

    async def _refuse_stream(self, code: Code, message: str) -> None:
        with contextlib.suppress(StreamLost):
            await self._stream.send(frames.encode(Refused(STREAM_SLOT, code, message)))

    async def _serve(self) -> None:
        sending = asyncio.ensure_future(self._send_all())
        try:
            while (frame := await self._stream.receive()) is not None:
                self._hear(frames.decode(frame))
        finally:
            sending.cancel()
            await asyncio.wait([sending])

    def _close(self) -> None:
        for slot in list(self._slots.values()):
            self._drop(slot)
        if self._watermark_timer is not None:
            self._watermark_timer.cancel()
        for task in self._reading:
            task.cancel()
        self._stream.close()

    # hearing the follower

    def _hear(self, frame: Frame) -> None:
        match frame:
            case frames.Ack(received_bytes, items):
                self._received_bytes = received_bytes
                for slot, end, start in items:
                    self._acked(slot, end, start)
                if self._behind:
                    self._awake.set()
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
                self._registered_anew(frame)
            case _:
                raise frames.BadFrame(f"{type(frame).__name__} does not come from a follower")

    def _acked(self, number: int, end: int, start: int) -> None:
        slot = self._slots.get(number)
        if slot is not None and end <= slot.sent:
            hello = self._hello
            slot.partition.acked(hello.broker_id, end=end, start=start, broker_epoch=hello.broker_epoch)
            self._host.follower_came_nearer(slot.partition)

    def _registered_anew(self, hello: Hello) -> None:
        """The same broker with a new epoch: what it has still holds, and may now be enough to be in sync."""
        self._hello = hello
        for slot in list(self._slots.values()):
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
            self._say(Refused(follow.slot, error.code, str(error)))
            return
        if (apart := _parting(partition, follow)) is not None:
            self._say(apart)
            return
        slot = Slot(self, partition, follow)
        self._slots[follow.slot] = slot
        replaced = partition.copies.get(self._hello.broker_id)
        partition.copies[self._hello.broker_id] = slot
        if replaced is not None:
            replaced.ended(Code.fenced_leader_epoch)
        self._acked(follow.slot, follow.end, follow.start)
        self.has_more(slot)
        self.has_watermark(slot)

    def _require_replica(self, partition: Partition) -> None:
        view = partition.view
        if view is None or view.follower(self._hello.broker_id) is None:
            text = f"broker {self._hello.broker_id} is not a replica of {partition}"
            raise KafkaError(Code.not_leader_or_follower, text)

    def _forget(self, number: int) -> None:
        if (slot := self._slots.get(number)) is not None:
            self._drop(slot)

    def _drop(self, slot: Slot) -> None:
        self._slots.pop(slot.number, None)
        self._behind.pop(slot, None)
        self._untold.pop(slot, None)
        copies = slot.partition.copies
        if copies.get(self._hello.broker_id) is slot:
            del copies[self._hello.broker_id]

    def give_up(self, slot: Slot, error: KafkaError) -> None:
        if self._slots.get(slot.number) is slot:
            self._drop(slot)
            self._say(Refused(slot.number, error.code, str(error)))

    # sending

    def _say(self, frame: Frame) -> None:
        self._first.append(frame)
        self._awake.set()

    def has_more(self, slot: Slot) -> None:
        if slot not in self._behind:
            self._behind[slot] = None
            self._awake.set()

    def has_watermark(self, slot: Slot) -> None:
        self._untold[slot] = None
        if self._watermark_timer is None:
            loop = asyncio.get_running_loop()
            self._watermark_timer = loop.call_later(WATERMARK_DELAY_S, self._watermarks_are_due)

    def _watermarks_are_due(self) -> None:
        self._watermark_timer = None
        self._watermarks_due = True
        self._awake.set()

    async def _send_all(self) -> None:
        try:
            while True:
                await self._awake.wait()
                self._awake.clear()
                for frame in self._frames():
                    await self._stream.send(frame)
        except StreamLost:
            self._stream.close()  # the receiving side hears of it and ends
        except Exception:
            log.exception("sending to broker %d failed", self._hello.broker_id)
            self._stream.close()

    def _frames(self) -> Iterator[bytes]:
        """What there is to send now, and what comes up while it is being sent."""
        while True:
            if self._first:
                yield frames.encode(self._first.pop(0))
            elif (data := self._data()) is not None:
                yield data
            elif self._watermarks_due:
                self._watermarks_due = False
                if (watermarks := self._watermarks()) is not None:
                    yield watermarks
            else:
                return

    def _watermarks(self) -> bytes | None:
        untold, self._untold = self._untold, {}
        items = []
        for slot in untold:
            if slot.told != slot.news:
                slot.told = slot.news
                items.append(frames.Watermark(slot.number, *slot.told))
        return frames.encode(frames.Watermarks(items)) if items else None

    def _data(self) -> bytes | None:
        """Batches of the partitions whose turn it is, or None when there are none, or too many are on their way."""
        entries: list[Entry] = []
        batches: list[bytes] = []
        size = 0
        turns = len(self._behind)
        while turns and size < MESSAGE_BYTES and self._sent_bytes - self._received_bytes < UNACKED_BYTES_MAX:
            turns -= 1
            slot = next(iter(self._behind))
            del self._behind[slot]
            if self._is_held_back(slot):
                continue
            share = min(MESSAGE_BYTES - size, TURN_BYTES if self._behind or slot.buckets else MESSAGE_BYTES)
            data = self._read(slot, share, whole_first=not entries)
            if data:
                entries.append(self._entry(slot, data))
                batches.append(data)
                size += len(data)
                self._sent_bytes += len(data)
        return frames.encode(frames.Data(entries, batches)) if entries else None

    def _is_held_back(self, slot: Slot) -> bool:
        """By a throttle; its turn comes again when that allows more."""
        slot.buckets = self._host.throttles.of(slot.partition, self._hello.broker_id)
        if not slot.buckets:
            return False
        loop = asyncio.get_running_loop()
        wait_s = max(bucket.wait_s(loop.time()) for bucket in slot.buckets)
        if wait_s > 0:
            loop.call_later(min(wait_s, THROTTLE_LOOK_S_MAX), self._resume, slot)
        return wait_s > 0

    def _resume(self, slot: Slot) -> None:
        if self._slots.get(slot.number) is slot:
            self.has_more(slot)

    def _entry(self, slot: Slot, data: bytes) -> Entry:
        base_offset, slot.sent = slot.sent, end_of(data)
        slot.told = slot.news
        for bucket in slot.buckets:
            bucket.take(len(data), asyncio.get_running_loop().time())
        if slot.is_behind:
            self._behind[slot] = None
        return Entry(slot.number, slot.epoch, *slot.told, base_offset, len(data))

    def _read(self, slot: Slot, share: int, *, whole_first: bool) -> bytes | None:
        """The next batches of a slot; nothing when there are none, no room, or the disk has to be asked first."""
        if slot.cold is not None:
            cold, slot.cold = slot.cold, None
            return cold
        if slot.reading or not slot.is_behind:
            return None
        try:
            data = slot.partition.read(
                start=slot.sent, end=slot.partition.log.end_offset, size_bytes_max=share, whole_first=whole_first
            )
        except KafkaError as error:
            self._unreadable(slot, error)
            return None
        if data is None:
            self._read_cold(slot)
        elif not data and not whole_first:
            self._behind[slot] = None  # its next batch is larger than the room that was left
        return data

    def _read_cold(self, slot: Slot) -> None:
        slot.reading = True
        task = asyncio.ensure_future(self._fill_cold(slot))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _fill_cold(self, slot: Slot) -> None:
        try:
            data = await slot.partition.read_cold(
                start=slot.sent,
                end=slot.partition.log.end_offset,
                size_bytes_max=MESSAGE_BYTES,
                whole_first=True,
            )
        except KafkaError as error:
            self._unreadable(slot, error)
            return
        finally:
            slot.reading = False
        if data and self._slots.get(slot.number) is slot:
            slot.cold = data
            self.has_more(slot)

    def _unreadable(self, slot: Slot, error: KafkaError) -> None:
        if self._slots.get(slot.number) is not slot:
            return
        start = slot.partition.log.start_offset
        if slot.sent < start:
            self._drop(slot)
            self._say(frames.StartAt(slot.number, slot.epoch, start))
        else:
            self.give_up(slot, error)


def end_of(data: bytes) -> int:
    """The offset after the last of these whole batches."""
    position, end = 0, len(data)
    while True:
        size = int.from_bytes(data[position + LENGTH_AT : position + OVERHEAD_BYTES], "big") + OVERHEAD_BYTES
        if position + size + HEADER_BYTES > end:
            fields = HEADER.unpack_from(data, position)
            return int(fields[0]) + int(fields[6]) + 1
        position += size


def _parting(partition: Partition, follow: Follow) -> frames.Diverged | frames.StartAt | None:
    """Where the follower's log is not the beginning of this one; None when it is."""
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
