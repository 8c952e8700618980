"""Long poll: fetches that wait for more records, and read again when there may be enough."""

import asyncio
from collections.abc import Awaitable, Callable

from ottla.api.call import Answer, Deferred
from ottla.api.fetch_plan import Plan, Reading
from ottla.api.pacing import Turn, sliced
from ottla.replica.partition import Partition

__all__ = ["DelayedFetch", "DelayedLargeFetch"]


class DelayedFetch(Deferred):
    """The long poll: reads again when the partitions have grown by enough bytes together, or one changed its role.

    To be made and started in the turn of the loop in which the plan was read: no append in between is missed. One
    append may concern very many fetches: those of many partitions read in slices, so that others are served in between.
    """

    def __init__(self, plan: Plan, answer: Callable[[Reading], Answer], *, size_bytes_min: int, wait_ms: int) -> None:
        super().__init__()
        self._plan = plan
        self._answer = answer
        self._reading = Reading()
        self._size_bytes_min = size_bytes_min
        self._missing_bytes = size_bytes_min - plan.last_size_bytes
        self._is_checking = False
        self._time_is_up = False
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._wait_s = wait_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._partitions: list[Partition] = []

    def begin_waiting(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._wait_s, self._check, True)
        self._partitions = self._plan.partitions
        for partition in self._partitions:
            partition.watch(self)

    def moved(self, partition: Partition, appended_bytes: int) -> None:
        if self._plan.undecided:
            appended_bytes = self._plan.readable_bytes(partition, appended_bytes)
        self._missing_bytes -= appended_bytes
        if self._missing_bytes <= 0 and not self._is_checking:
            self._is_checking = True
            asyncio.get_running_loop().call_soon(self._check, False)

    def make(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._answer(self._reading)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        for partition in self._partitions:
            partition.unwatch(self)

    def _check(self, time_is_up: bool) -> None:
        self._is_checking = False
        self._time_is_up |= time_is_up
        if self.is_over or self._task is not None:
            return
        if self._plan.is_wide:
            self._task = asyncio.ensure_future(self._check_in_slices())
            return
        self._reading = reading = self._plan.read()
        if reading.cold:
            self._task = asyncio.ensure_future(self._read_cold())
        elif self._is_enough(reading, time_is_up):
            self.finish()
        else:
            self._missing_bytes = self._size_bytes_min - reading.size_bytes

    def _is_enough(self, reading: Reading, time_is_up: bool) -> bool:
        return time_is_up or reading.is_final or reading.size_bytes >= self._size_bytes_min

    async def _read_cold(self) -> None:
        try:
            self._reading = await self._plan.read_cold()
        except Exception as error:
            self._error = error
        self._task = None  # which `finish` would cancel
        self.finish()

    async def _check_in_slices(self) -> None:
        """Appends during a read count for the next one: the read may have passed their partition."""
        try:
            while self._missing_bytes <= 0 or self._time_is_up:
                time_is_up, self._missing_bytes = self._time_is_up, self._size_bytes_min
                self._reading = reading = await self._plan.read_in_slices()
                self._missing_bytes -= reading.size_bytes
                if self._is_enough(reading, time_is_up):
                    break
            else:
                self._task = None
                return
        except Exception as error:
            self._error = error
        self._task = None
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
        self._wait_s = wait_ms / 1000
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin_waiting(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._wait_s, self._end_of_time)
        self._task = asyncio.ensure_future(self._run())

    def moved(self, partition: Partition, appended_bytes: int) -> None:
        self._appended_bytes += self._plan.readable_bytes(partition, appended_bytes)
        if self._is_worth_reading:
            self._changed.set()

    def make(self) -> Answer:
        if self._error is not None:
            raise self._error
        return self._made

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None and not self._task.done():
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
                if not self._is_worth_reading:
                    self._changed.clear()
                    await self._changed.wait()
        except Exception as error:
            self._error = error
        asyncio.get_running_loop().call_soon(self.finish)  # which would cancel this task

    @property
    def _is_worth_reading(self) -> bool:
        return self._time_is_up or self._appended_bytes >= self._size_bytes_min - self._plan.last_size_bytes

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
        """Whether that was the last read."""
        if not self._is_worth_reading:
            return False
        self._appended_bytes = 0
        async with Turn(self._lock):
            time_is_up = self._time_is_up
            reading = await self._plan.read_in_slices()
            is_last = time_is_up or reading.is_final or reading.size_bytes >= self._size_bytes_min
            if is_last:
                self._made = await self._answer(reading)
        return is_last
