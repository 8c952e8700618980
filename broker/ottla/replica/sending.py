"""What a leader sends to one follower, and in which order. On the event loop.

An idle stream sends new batches at once; a busy one gathers them into messages of up to MESSAGE_BYTES. Partitions take
turns. UNACKED_BYTES_MAX limits what the follower has not acknowledged.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from ottla.errors import Code, KafkaError
from ottla.replica.core.throttle import TokenBucket
from ottla.replica.partition import Partition
from ottla.replica.throttling import Throttles
from ottla.wire import replication as frames
from ottla.wire.batch import HEADER, HEADER_BYTES, OVERHEAD_BYTES
from ottla.wire.replication import ITEMS_MAX, Entry, Follow, Frame, Refused

__all__ = ["Outgoing", "Slot"]

MESSAGE_BYTES = 256 << 10  # larger messages are no faster, and gRPC buffers several of them
TURN_BYTES = 128 << 10  # of one partition in a message, while others wait or a throttle counts
UNACKED_BYTES_MAX = 4 << 20
WATERMARK_DELAY_S = 0.005  # a watermark without batches waits this long for batches to carry it
WATERMARK_WAITS_MAX = 4  # while batches go: the next of them will carry it
THROTTLE_RECHECK_S_MAX = 1.0  # a throttle may be lifted at any time
LENGTH_AT = 8


class Slot:
    """One partition that one follower copies."""

    __slots__ = ("announced", "buckets", "cold", "epoch", "number", "outgoing", "partition", "reading", "sent")

    def __init__(self, outgoing: "Outgoing", partition: Partition, follow: Follow) -> None:
        self.outgoing = outgoing
        self.partition = partition
        self.number = follow.slot
        self.epoch = partition.leader_epoch
        self.sent = follow.end
        self.announced = (-1, -1)  # high watermark, log start
        self.buckets: list[TokenBucket] = []  # throttles of the next batches
        self.reading = False  # from the disk, in a thread
        self.cold: bytes | None = None  # batches that were read so

    @property
    def is_behind(self) -> bool:
        return self.sent < self.partition.log.end_offset

    def announce(self) -> bool:
        """Whether the follower lacks the current high watermark or log start. Marks them as sent."""
        before = self.announced
        self.announced = self.partition.high_watermark, self.partition.log.start_offset
        return self.announced != before

    def took(self, end: int) -> int:
        """Batches up to `end` are sent, with the watermark. Returns their start offset."""
        base_offset, self.sent = self.sent, end
        self.announced = self.partition.high_watermark, self.partition.log.start_offset
        return base_offset

    def appended(self) -> None:
        self.outgoing.has_more(self)

    def watermark_moved(self) -> None:
        self.outgoing.has_watermark(self)

    def ended(self, code: Code) -> None:
        self.outgoing.give_up(self, KafkaError(code, f"{self.partition} is no longer led in epoch {self.epoch}"))


class Outgoing:
    """`slots` are the copied partitions, by the follower's slot numbers. `awake` is set when there is something to
    send."""

    def __init__(self, follower: int, throttles: Throttles) -> None:
        self.slots: dict[int, Slot] = {}
        self.awake = asyncio.Event()
        self._follower = follower
        self._throttles = throttles
        self._behind: dict[Slot, None] = {}  # in round-robin order
        self._unannounced: dict[Slot, None] = {}  # whose watermark moved
        self._first: deque[Frame] = deque()  # to be sent before any batches
        self._sent_bytes = 0
        self._received_bytes = 0
        self._watermark_timer: asyncio.TimerHandle | None = None
        self._watermark_waits = 0
        self._watermarks_due = False
        self._carried = False  # batches were sent since the timer was set
        self._reading: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        for slot in list(self.slots.values()):
            self.drop(slot)
        if self._watermark_timer is not None:
            self._watermark_timer.cancel()
        for task in self._reading:
            task.cancel()

    # what to send

    def add(self, partition: Partition, follow: Follow) -> None:
        """Send the partition from the follower's end on; replaces an older slot of the partition."""
        slot = self.slots[follow.slot] = Slot(self, partition, follow)
        partition.add_copy(self._follower, slot)
        self.has_more(slot)
        self.has_watermark(slot)

    def drop(self, slot: Slot) -> None:
        self.slots.pop(slot.number, None)
        self._behind.pop(slot, None)
        self._unannounced.pop(slot, None)
        slot.partition.remove_copy(self._follower, slot)

    def give_up(self, slot: Slot, error: KafkaError) -> None:
        if self.slots.get(slot.number) is slot:
            self.drop(slot)
            self.enqueue(Refused(slot.number, error.code, str(error)))

    def received(self, size_bytes: int) -> None:
        """The follower has received `size_bytes` since the stream started."""
        self._received_bytes = size_bytes
        if self._behind:
            self.awake.set()

    def enqueue(self, frame: Frame) -> None:
        """To be sent before any batches."""
        self._first.append(frame)
        self.awake.set()

    def has_more(self, slot: Slot) -> None:
        if slot not in self._behind:
            self._behind[slot] = None
            self.awake.set()

    def has_watermark(self, slot: Slot) -> None:
        self._unannounced[slot] = None
        if self._watermark_timer is None:
            self._delay_watermarks()

    def _delay_watermarks(self) -> None:
        self._carried = False
        self._watermark_timer = asyncio.get_running_loop().call_later(WATERMARK_DELAY_S, self._watermarks_are_due)

    def _watermarks_are_due(self) -> None:
        self._watermark_waits += 1
        if self._carried and self._watermark_waits < WATERMARK_WAITS_MAX:
            self._delay_watermarks()
            return
        self._watermark_timer, self._watermark_waits = None, 0
        self._watermarks_due = True
        self.awake.set()

    # sending

    def frames(self) -> Iterator[bytes]:
        """The frames to send now, including those that become ready while sending."""
        while True:
            if self._first:
                yield frames.encode(self._first.popleft())
            elif (data := self._data()) is not None:
                yield data
            elif self._watermarks_due:
                self._watermarks_due = False
                yield from self._watermarks()
            else:
                return

    def _watermarks(self) -> Iterator[bytes]:
        unannounced, self._unannounced = self._unannounced, {}
        items = [frames.Watermark(slot.number, *slot.announced) for slot in unannounced if slot.announce()]
        for begin in range(0, len(items), ITEMS_MAX):
            yield frames.encode(frames.Watermarks(items[begin : begin + ITEMS_MAX]))

    def _data(self) -> bytes | None:
        """The next message of batches; None if there are none, or too many bytes are in flight."""
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
        if not entries:
            return None
        self._carried = True
        return frames.encode(frames.Data(entries, batches))

    def _is_held_back(self, slot: Slot) -> bool:
        """Whether a throttle delays the slot; it is resumed when the throttle allows more."""
        slot.buckets = self._throttles.of(slot.partition, self._follower)
        if not slot.buckets:
            return False
        loop = asyncio.get_running_loop()
        wait_s = max(bucket.wait_s(loop.time()) for bucket in slot.buckets)
        if wait_s > 0:
            loop.call_later(min(wait_s, THROTTLE_RECHECK_S_MAX), self._resume, slot)
        return wait_s > 0

    def _resume(self, slot: Slot) -> None:
        if self.slots.get(slot.number) is slot:
            self.has_more(slot)

    def _entry(self, slot: Slot, data: bytes) -> Entry:
        base_offset = slot.took(end_of(data))
        for bucket in slot.buckets:
            bucket.take(len(data), asyncio.get_running_loop().time())
        if slot.is_behind:
            self._behind[slot] = None
        return Entry(slot.number, slot.epoch, *slot.announced, base_offset, len(data))

    def _read(self, slot: Slot, share: int, *, whole_first: bool) -> bytes | None:
        """The next batches of a slot; None if there are none, no space is left, or they are not in the page cache."""
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
            self._behind[slot] = None  # its next batch is larger than the space that was left
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
        if data and self.slots.get(slot.number) is slot:
            slot.cold = data
            self.has_more(slot)

    def _unreadable(self, slot: Slot, error: KafkaError) -> None:
        if self.slots.get(slot.number) is not slot:
            return
        start = slot.partition.log.start_offset
        if slot.sent < start:
            self.drop(slot)
            self.enqueue(frames.StartAt(slot.number, slot.epoch, start))
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
