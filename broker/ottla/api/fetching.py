"""The finding part of Fetch: what of which partition goes into the answer, within limits, and waiting for more.

Records are only located here; the connection reads them when the client takes them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypedDict

from ottla.api.call import Answer, Deferred
from ottla.api.fetch_sessions import Wanted
from ottla.api.slices import Pace, Turn, sliced
from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.replica.nearest import LEADER, nearest
from ottla.replica.partition import Partition
from ottla.storage.log.log import Located
from ottla.wire.fetch_response import Fetched

__all__ = ["DelayedFetch", "DelayedLargeFetch", "Plan", "Reading"]


class Span(TypedDict):
    """The arguments of Partition.locate."""

    start: int
    end: int
    size_bytes_max: int
    whole_first: bool


@dataclass(slots=True)
class Reading:
    answers: list[tuple[Wanted, Fetched]] = field(default_factory=list)
    size_bytes: int = 0
    is_final: bool = False
    """An error, a divergence or a nearer replica: the client should get it at once."""
    cold: bool = False
    """Some of it is not in memory: read again with `read_cold`."""


class Plan:
    """One fetch request, readable again and again while it waits.

    `from_leader_only`: a client too old to be sent to a follower. `rack`: where the client would rather read.
    """

    def __init__(
        self,
        *,
        wanted: list[Wanted],
        size_bytes_max: int,
        read_committed: bool,
        replicas: ReplicaHost,
        pace: Pace,
        from_leader_only: bool = False,
        rack: str = "",
    ) -> None:
        self.wanted = wanted
        self.last_size_bytes = 0
        self.saw_undecided = False
        """Some records wait for the end of their transaction, which makes many bytes readable with one small batch."""
        self._size_bytes_max = size_bytes_max
        self._read_committed = read_committed
        self._replicas = replicas
        self.pace = pace
        self._from_leader_only = from_leader_only
        self._rack = rack

    @property
    def partitions(self) -> list[Partition]:
        return [partition for wanted in self.wanted if (partition := self.find(wanted)) is not None]

    def find(self, wanted: Wanted) -> Partition | None:
        return self._replicas.find(wanted.topic, wanted.index)

    def read(self) -> Reading:
        self.saw_undecided = False
        reading = Reading()
        for wanted in self.wanted:
            fetched = self._read_one(wanted, reading)
            if reading.cold:
                return reading
            reading.answers.append((wanted, fetched))
        self.last_size_bytes = reading.size_bytes
        return reading

    async def read_cold(self) -> Reading:
        """The same with the disk; whatever was cold is located in a thread."""
        return await self.read_in_slices()

    async def read_in_slices(self) -> Reading:
        """For many partitions: others are served in between."""
        self.saw_undecided = False
        reading = Reading()
        async for wanted in sliced(self.wanted, self.pace):
            fetched = self._read_one(wanted, reading)
            if reading.cold:
                reading.cold = False
                fetched = await self._read_one_cold(wanted, reading)
            reading.answers.append((wanted, fetched))
        self.last_size_bytes = reading.size_bytes
        return reading

    def _read_one(self, wanted: Wanted, reading: Reading) -> Fetched:
        try:
            partition = self._replicas.require(wanted.topic, wanted.index)
            fetched = self._prepare(partition, wanted)
            span = self._span(partition, wanted, reading)
            if span is not None and fetched.diverging is None and fetched.preferred_read_replica == LEADER:
                found = partition.locate(**span)
                if found is None:
                    reading.cold = True
                else:
                    self._fill(fetched, found, reading)
        except KafkaError as error:
            fetched = self._failure(wanted, error)
        reading.is_final |= bool(fetched.error_code or fetched.diverging or fetched.preferred_read_replica != LEADER)
        return fetched

    async def _read_one_cold(self, wanted: Wanted, reading: Reading) -> Fetched:
        try:
            partition = self._replicas.require(wanted.topic, wanted.index)
            fetched = self._prepare(partition, wanted)
            span = self._span(partition, wanted, reading)
            if span is not None:
                self._fill(fetched, await partition.locate_cold(**span), reading)
        except KafkaError as error:
            fetched = self._failure(wanted, error)
        return fetched

    def _fill(self, fetched: Fetched, found: Located, reading: Reading) -> None:
        if found.region is not None:
            fetched.records = found.region
            reading.size_bytes += len(found.region)
        if self._read_committed:
            fetched.aborted = found.aborted

    def _prepare(self, partition: Partition, wanted: Wanted) -> Fetched:
        """The answer without records: offsets, and the checks of epochs and range."""
        if self._from_leader_only:
            partition.require_leader(wanted.leader_epoch)
        else:
            partition.require_epoch(wanted.leader_epoch)
        log = partition.log
        if not log.start_offset <= wanted.offset <= partition.high_watermark:
            self._refuse_offset(partition, wanted)
        stable = partition.last_stable_offset
        self.saw_undecided |= self._read_committed and stable < partition.high_watermark
        return Fetched(
            wanted.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=stable,
            log_start_offset=log.start_offset,
            aborted=() if self._read_committed else None,
            diverging=self._diverging(partition, wanted),
            preferred_read_replica=self._preferred(partition, wanted.offset) if self._rack else LEADER,
        )

    def _preferred(self, partition: Partition, offset: int) -> int:
        return nearest(partition, offset=offset, rack=self._rack, image=self._replicas.image)

    def _refuse_offset(self, partition: Partition, wanted: Wanted) -> None:
        if wanted.offset > partition.log.end_offset or wanted.offset < partition.log.start_offset:
            raise KafkaError(
                Code.offset_out_of_range,
                f"{partition} has {partition.log.start_offset} to {partition.high_watermark}, not {wanted.offset}",
            )

    def _diverging(self, partition: Partition, wanted: Wanted) -> tuple[int, int] | None:
        if wanted.last_fetched_epoch < 0:
            return None
        epoch, end = partition.log.epochs.end_offset_for(wanted.last_fetched_epoch, partition.log.end_offset)
        return (epoch, end) if epoch < wanted.last_fetched_epoch or end < wanted.offset else None

    def _span(self, partition: Partition, wanted: Wanted, reading: Reading) -> Span | None:
        """What to read, or None when there is nothing new or no bytes are left."""
        end = partition.last_stable_offset if self._read_committed else partition.high_watermark
        bytes_left = min(wanted.size_bytes_max, self._size_bytes_max - reading.size_bytes)
        first = reading.size_bytes == 0
        if wanted.offset >= end or (bytes_left <= 0 and not first):
            return None
        return {"start": wanted.offset, "end": end, "size_bytes_max": max(bytes_left, 0), "whole_first": first}

    def _failure(self, wanted: Wanted, error: KafkaError) -> Fetched:
        leader = None
        if error.code in (Code.not_leader_or_follower, Code.fenced_leader_epoch):
            leader = self._replicas.leader_of(wanted.topic, wanted.index)
        return Fetched(wanted.index, error.code, leader=leader)


class DelayedFetch(Deferred):
    """The long poll: reads again when the partitions have grown by enough bytes together, or one changed its role.

    Made before the log is read for the first time: no append between that and the waiting is missed.
    """

    def __init__(self, plan: Plan, answer: Callable[[Reading], Answer], *, size_bytes_min: int, wait_ms: int) -> None:
        super().__init__()
        self._plan = plan
        self._answer = answer
        self._reading = Reading()
        self._size_bytes_min = size_bytes_min
        self._missing_bytes = size_bytes_min - plan.last_size_bytes
        self._is_checking = False
        self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._check, True)
        self._partitions = plan.partitions
        for partition in self._partitions:
            partition.watch(self)

    def moved(self, partition: Partition, appended_bytes: int) -> None:
        self._missing_bytes -= appended_bytes
        if (self._missing_bytes <= 0 or self._plan.saw_undecided) and not self._is_checking:
            self._is_checking = True
            asyncio.get_running_loop().call_soon(self._check, False)

    def make(self) -> Answer:
        return self._answer(self._reading)

    def close(self) -> None:
        self._timer.cancel()
        for partition in self._partitions:
            partition.unwatch(self)

    def _check(self, time_is_up: bool) -> None:
        self._is_checking = False
        if self.is_over:
            return
        self._reading = reading = self._plan.read()
        if reading.cold:
            self._cold = asyncio.ensure_future(self._read_cold())
        elif time_is_up or reading.is_final or reading.size_bytes >= self._size_bytes_min:
            self.finish()
        else:
            self._missing_bytes = self._size_bytes_min - reading.size_bytes

    async def _read_cold(self) -> None:
        self._reading = await self._plan.read_cold()
        self.finish()


class DelayedLargeFetch(Deferred):
    """The same for more partitions than one turn of the loop bears.

    They are watched, read and answered in slices, one such fetch after the other; nobody waits for new records while it
    is his turn. Appends during a reading count for the next one: its slice may have been over. `first` is what was read
    before any partition was watched.
    """

    def __init__(
        self,
        plan: Plan,
        first: Reading,
        answer: Callable[[Reading], Awaitable[Answer]],
        *,
        lock: asyncio.Lock,
        size_bytes_min: int,
        wait_ms: int,
    ) -> None:
        super().__init__()
        self._plan = plan
        self._first: Reading | None = first
        self._answer = answer
        self._lock = lock
        self._size_bytes_min = size_bytes_min
        self._appended_bytes = 0
        self._changed = asyncio.Event()
        self._made: Answer = None
        self._error: Exception | None = None
        self._partitions: list[Partition] = []
        self._time_is_up = False
        self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self._end_of_time)
        self._task = asyncio.ensure_future(self._run())

    def moved(self, partition: Partition, appended_bytes: int) -> None:
        self._appended_bytes += appended_bytes
        self._changed.set()

    def make(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._made

    def close(self) -> None:
        self._timer.cancel()
        if not self._task.done():
            self._task.cancel()
        for partition in self._partitions:
            partition.unwatch(self)

    def _end_of_time(self) -> None:
        self._time_is_up = True
        self._changed.set()

    async def _run(self) -> None:
        try:
            await self._watch()
            while not await self._read():
                await self._changed.wait()
                self._changed.clear()
        except Exception as error:
            self._error = error
        asyncio.get_running_loop().call_soon(self.finish)  # which would cancel this task

    async def _watch(self) -> None:
        """What came since the first reading counts as much as is missing: it is worth another one."""
        first, self._first = self._first, None
        assert first is not None
        async for wanted, fetched in sliced(first.answers, self._plan.pace):
            partition = self._plan.find(wanted)
            if partition is not None:
                self._partitions.append(partition)
                partition.watch(self)
                if partition.high_watermark != fetched.high_watermark:
                    self._appended_bytes = self._size_bytes_min

    async def _read(self) -> bool:
        """Whether that was the last reading."""
        missing_bytes = self._size_bytes_min - self._plan.last_size_bytes
        enough = self._appended_bytes >= missing_bytes or self._plan.saw_undecided
        if not enough and not self._time_is_up:
            return False
        self._appended_bytes = 0
        async with Turn(self._lock):
            time_is_up = self._time_is_up
            reading = await self._plan.read_in_slices()
            is_last = time_is_up or reading.is_final or reading.size_bytes >= self._size_bytes_min
            if is_last:
                self._made = await self._answer(reading)
        return is_last
