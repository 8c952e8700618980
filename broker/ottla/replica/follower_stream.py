"""The follower's end of replication: one stream to each broker that leads partitions this one copies.

    image → Replication.follow_leader → FollowerStream.follow / leave → stream → copying → Ack

A stream connects when it has partitions to follow, and retries while it has. After a refusal, or data that does not
match the copy, the partition is followed again after a pause, from the copy's current position.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import islice

from ottla.errors import Code, KafkaError
from ottla.replica import copying
from ottla.replica.partition import Partition
from ottla.replica.streams import Connect, Stream, StreamLost
from ottla.wire import replication as frames
from ottla.wire.replication import ITEMS_MAX, STREAM_SLOT, Frame, Refused

__all__ = ["FollowerStream"]

log = logging.getLogger("ottla.replica")

PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 1.0
PAUSE_BEHIND_S_MAX = 0.2  # one of the two is about to learn of the other's registration


class FollowerStream:
    """`address` returns host:port of the leader's gRPC server, None while it is unknown; `cutting` limits concurrent
    truncations."""

    def __init__(
        self,
        leader_id: int,
        *,
        connect: Connect,
        address: Callable[[int], str | None],
        hello: Callable[[], frames.Hello],
        cutting: asyncio.Semaphore,
    ) -> None:
        self.leader_id = leader_id
        self._connect = connect
        self._address = address
        self._hello = hello
        self._partitions: dict[Partition, int | None] = {}  # followed → its slot; None: the position is not stated yet
        self._slots: dict[int, Partition] = {}
        self._last_slot = STREAM_SLOT
        self._pauses: dict[Partition, float] = {}
        self._timers: dict[Partition, asyncio.TimerHandle] = {}
        self._cutting = cutting
        self._cuts: dict[Partition, asyncio.Task[None]] = {}  # no position is stated during a truncation
        self._stream: Stream | None = None
        self._sent_hello: frames.Hello | None = None
        self._outbox: deque[Frame] = deque()
        self._acks: dict[int, Partition] = {}
        self._received_bytes = 0
        self._owes_ack = False
        self._is_behind = False  # this broker or the leader does not know the other's registration yet
        self._awake = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    # followed partitions

    def follow(self, partition: Partition) -> None:
        """Start to follow, or follow in a new leader epoch."""
        self.leave(partition)
        self._partitions[partition] = None
        self._send_position(partition)
        self._awake.set()

    def leave(self, partition: Partition) -> None:
        slot = self._partitions.pop(partition, None)
        self._pauses.pop(partition, None)
        if (timer := self._timers.pop(partition, None)) is not None:
            timer.cancel()
        if (cut := self._cuts.pop(partition, None)) is not None:
            cut.cancel()
        partition.stop_notifying_flushed(self._acknowledge)
        if slot is not None:
            self._forget(slot)
            self._enqueue(frames.Unfollow([slot]))

    def _forget(self, slot: int) -> None:
        self._slots.pop(slot, None)
        self._acks.pop(slot, None)

    def brokers_changed(self) -> None:
        """This broker may have registered again: the leader has to know its new epoch."""
        hello = self._hello()
        if self._stream is not None and self._sent_hello != hello:
            self._sent_hello = hello
            self._enqueue(hello)

    async def stop(self) -> None:
        cuts = list(self._cuts.values())
        for partition in list(self._partitions):
            self.leave(partition)
        self._task.cancel()
        await asyncio.wait([self._task, *cuts])

    # the stream

    async def _run(self) -> None:
        pause = PAUSE_S_MIN
        while True:
            await self._until_needed()
            try:
                welcomed = await self._run_stream()
            except Exception:
                log.exception("copying from leader %d failed; retrying", self.leader_id)
                welcomed = False
            pause = PAUSE_S_MIN if welcomed else min(pause * 2, PAUSE_BEHIND_S_MAX if self._is_behind else PAUSE_S_MAX)
            await asyncio.sleep(pause)

    async def _until_needed(self) -> None:
        while not self._partitions:
            self._awake.clear()
            await self._awake.wait()

    async def _run_stream(self) -> bool:
        """One stream from start to end. Returns whether the leader accepted it."""
        self._is_behind = False
        address = self._address(self.leader_id)
        if address is None:
            return False
        stream = self._connect(address)
        try:
            self._sent_hello = self._hello()
            await stream.send(frames.encode(self._sent_hello))
            if not self._check_welcome(await stream.receive(), address):
                return False
            await self._copy(stream)
        except StreamLost as lost:
            log.info("the stream to leader %d at %s ended: %s", self.leader_id, address, lost)
        except frames.BadFrame as bad:
            log.error("leader %d at %s sent a malformed frame: %s", self.leader_id, address, bad)
        finally:
            stream.close()
            welcomed = self._stream is not None
            self._disconnected()
        return welcomed

    def _check_welcome(self, first: bytes | None, address: str) -> bool:
        answer = frames.decode(first) if first is not None else None
        if isinstance(answer, frames.Welcome) and answer.broker_id == self.leader_id:
            return True
        said = answer.message if isinstance(answer, Refused) else repr(answer)
        self._is_behind = isinstance(answer, Refused) and answer.code in frames.BEHIND
        level = logging.DEBUG if self._is_behind else logging.ERROR
        log.log(level, "broker %d at %s refuses replication: %s", self.leader_id, address, said)
        return False

    async def _copy(self, stream: Stream) -> None:
        self._stream = stream
        self._received_bytes, self._last_slot = 0, STREAM_SLOT
        self.brokers_changed()  # since the greeting
        for partition in self._partitions:
            self._send_position(partition)
        sending = asyncio.ensure_future(self._send_all(stream))
        try:
            while (frame := await stream.receive()) is not None:
                self._receive(frames.decode(frame))
        finally:
            sending.cancel()
            await asyncio.wait([sending])

    def _disconnected(self) -> None:
        self._stream = self._sent_hello = None
        self._slots.clear()
        self._acks.clear()
        self._outbox.clear()
        self._owes_ack = False
        for partition in self._partitions:
            self._partitions[partition] = None

    # sending

    def _send_position(self, partition: Partition) -> None:
        """Send the copy's position to the leader, if there is a stream and no truncation is running."""
        if self._stream is None or partition not in self._partitions or partition in self._cuts:
            return
        self._last_slot += 1
        slot = self._last_slot
        self._partitions[partition] = slot
        self._slots[slot] = partition
        partition.notify_flushed(self._acknowledge)
        self._enqueue(frames.Follows([copying.position(partition, slot)]))

    def _retry_later(self, partition: Partition) -> None:
        """State the position again after a pause, which grows with every failure."""
        if partition not in self._partitions:
            return  # its log dir failed meanwhile
        self._partitions[partition] = None
        pause = self._pauses[partition] = min(self._pauses.get(partition, PAUSE_S_MIN / 2) * 2, PAUSE_S_MAX)
        loop = asyncio.get_running_loop()
        self._timers[partition] = loop.call_later(pause, self._send_position, partition)

    def _enqueue(self, frame: Frame) -> None:
        if self._stream is not None:
            self._outbox.append(frame)
            self._awake.set()

    def _acknowledge(self, partition: Partition) -> None:
        slot = self._partitions.get(partition)
        if slot is not None:
            self._acks[slot] = partition
            self._owes_ack = True
            self._awake.set()

    async def _send_all(self, stream: Stream) -> None:
        try:
            while True:
                await self._awake.wait()
                self._awake.clear()
                while self._outbox or self._owes_ack:
                    await stream.send(frames.encode(self._next_frame()))
        except StreamLost:
            stream.close()  # the receiving side gets the end of the stream

    def _next_frame(self) -> Frame:
        if self._outbox:
            frame = self._outbox.popleft()
            return self._merged(frame) if isinstance(frame, frames.Follows) else frame
        acks, self._acks, self._owes_ack = self._acks, {}, False
        if len(acks) > ITEMS_MAX:
            later = dict(islice(acks.items(), ITEMS_MAX, None))
            acks, self._acks, self._owes_ack = dict(islice(acks.items(), ITEMS_MAX)), later, True
        items = [frames.Acked(slot, each.durable_end, each.log.start_offset) for slot, each in acks.items()]
        return frames.Ack(self._received_bytes, items)

    def _merged(self, first: frames.Follows) -> frames.Follows:
        """Thousands of partitions may start together: merge consecutive Follows into one frame."""
        items = list(first.items)
        while len(items) < ITEMS_MAX and self._outbox and isinstance(following := self._outbox[0], frames.Follows):
            items.extend(following.items)
            self._outbox.popleft()
        return frames.Follows(items)

    # receiving

    def _receive(self, frame: Frame) -> None:
        match frame:
            case frames.Data(entries, batches):
                for entry, data in zip(entries, batches, strict=True):
                    self._copy_one(entry, data)
                self._owes_ack = True
                self._awake.set()
            case frames.Watermarks(items):
                for slot, high_watermark, start in items:
                    self._take_watermark(slot, high_watermark=high_watermark, start=start)
            case frames.Diverged(slot):
                self._begin_cut(slot, lambda partition: copying.cut(partition, frame))
            case frames.StartAt(slot, _, start):
                self._begin_cut(slot, lambda partition: copying.start_over(partition, start))
            case Refused(slot, code, message):
                self._refused(slot, Code(code), message)
            case _:
                raise frames.BadFrame(f"{type(frame).__name__} does not come from a leader")

    def _current(self, slot: int) -> Partition | None:
        """The partition of a slot, unless its leader epoch has changed since."""
        partition = self._slots.get(slot)
        is_followed = partition is not None and not partition.is_leader and partition.leader_id == self.leader_id
        return partition if is_followed else None

    def _take_watermark(self, slot: int, *, high_watermark: int, start: int) -> None:
        partition = self._current(slot)
        if partition is not None:
            before = partition.log.start_offset
            try:
                copying.take_watermark(partition, high_watermark=high_watermark, start=start)
            except OSError as failure:
                partition.disk_failed(failure)
            if partition.log.start_offset != before:
                self._acknowledge(partition)

    def _copy_one(self, entry: frames.Entry, data: memoryview | bytes | bytearray) -> None:
        self._received_bytes += entry.size
        partition = self._current(entry.slot)
        if partition is None:
            return
        try:
            copying.append(partition, entry, data)
        except (KafkaError, OSError) as failure:
            error = partition.disk_failed(failure) if isinstance(failure, OSError) else failure
            log.error("leader %d sent data that does not match the copy: %s", self.leader_id, error)
            self._forget(entry.slot)
            self._enqueue(Refused(entry.slot, error.code, str(error)))
            self._retry_later(partition)
        else:
            self._pauses.pop(partition, None)
            self._acks[entry.slot] = partition

    def _begin_cut(self, slot: int, cut: Callable[[Partition], Coroutine[None, None, bool]]) -> None:
        """Start a truncation. Until it ends, data for this slot is ignored; other partitions of the stream continue.

        The truncation continues if the stream ends: the leader's statement is valid for its whole epoch, in which its
        log only grows. Only a new epoch cancels it (`leave`).
        """
        partition = self._current(slot)
        if partition is None:
            return
        self._forget(slot)
        self._partitions[partition] = None
        self._cuts[partition] = asyncio.ensure_future(self._cut(partition, cut))

    async def _cut(self, partition: Partition, cut: Callable[[Partition], Coroutine[None, None, bool]]) -> None:
        is_cut = False
        try:
            async with self._cutting:
                is_cut = await cut(partition)
            if not is_cut:
                log.error("%s was not truncated where it diverges from leader %d; retrying", partition, self.leader_id)
        except KafkaError as error:
            log.error("%s cannot be truncated: %s", partition, error)
        except Exception:
            log.exception("%s cannot be truncated; retrying", partition)
        if self._cuts.get(partition) is not asyncio.current_task():
            return  # no longer followed, or followed in a newer epoch
        del self._cuts[partition]
        if is_cut:
            self._send_position(partition)
        else:
            self._retry_later(partition)

    def _refused(self, slot: int, code: Code, message: str) -> None:
        if slot == STREAM_SLOT:
            raise StreamLost(f"the leader refused: {message}")
        partition = self._slots.get(slot)
        if partition is None:
            return
        level = logging.DEBUG if code in frames.BEHIND else logging.ERROR
        log.log(level, "leader %d refuses %s: %s (%s)", self.leader_id, partition, message, code.name)
        self._forget(slot)
        self._retry_later(partition)
