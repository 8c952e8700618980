"""What holds up the next request of a connection, and the memory that its requests take."""

import asyncio
from collections.abc import Callable
from time import perf_counter

from ottla.net.memory import Receiver, RequestMemory
from ottla.wire.frames import FrameBuffer

__all__ = ["Intake"]

KEPT_BYTES_MAX = 4 * 1024 * 1024  # of requests that handlers keep until they are answered
RESERVED_BYTES_MIN = 16 * 1024  # a smaller frame that is under way is not worth counting
HANDLING_SECONDS_MAX = 0.005  # of one connection in a turn of the loop
TASKS_MAX = 4  # begun in a turn of the loop: they run in the next, all of them

# What holds it up; the first two until the loop comes back to this connection.
POSTPONED = 1  # until all answers are taken
GIVING_WAY = 2  # others are served first
STARVED = 4  # the frame under way waits for memory
BUSY = 8  # with a large request, or the codecs of the next one: none overtakes it
MUTED = 16  # until a quota allows the next request
KEEPING = 32  # too much of earlier requests is kept


class Intake:
    """`holds` is 0 when the next request may begin, as far as requests are concerned."""

    __slots__ = ("_frames", "_kept_bytes", "_memory", "_muted", "_reserved_bytes", "_tasks_left", "_until", "holds")

    def __init__(self, frames: FrameBuffer, memory: RequestMemory) -> None:
        self._frames = frames
        self._memory = memory
        self._kept_bytes = 0  # of requests, by handlers that are not done
        self._reserved_bytes = 0  # for the frame that is under way
        self._muted: asyncio.TimerHandle | None = None
        self._tasks_left = TASKS_MAX
        self._until = 0.0
        self.holds = 0

    # turns of the loop

    def begin_turn(self) -> None:
        self.holds &= ~(POSTPONED | GIVING_WAY)
        self._until, self._tasks_left = perf_counter() + HANDLING_SECONDS_MAX, TASKS_MAX

    @property
    def turn_is_over(self) -> bool:
        return not self._tasks_left or perf_counter() >= self._until

    def task_begun(self) -> None:
        self._tasks_left -= 1

    def give_way(self, resume: Callable[[], None]) -> None:
        """One that sends faster than its requests can be handled does not keep the loop from others."""
        if self._frames.unread_bytes:
            self.holds |= GIVING_WAY
            asyncio.get_running_loop().call_soon(resume)

    def postpone(self, frame: memoryview) -> None:
        """The frame comes again in a later turn."""
        self._frames.put_back(frame)
        self.holds |= POSTPONED

    @property
    def is_postponed(self) -> bool:
        return bool(self.holds & POSTPONED)

    def begin_alone(self) -> None:
        """No further request before `end_alone`."""
        self.holds |= BUSY

    def end_alone(self) -> None:
        self.holds &= ~BUSY

    # pauses

    def mute(self, pause_ms: int, resume: Callable[[], None]) -> None:
        """Begin nothing for so long. The longest of several pauses holds."""
        loop = asyncio.get_running_loop()
        until = loop.time() + pause_ms / 1000
        if self._muted is not None:
            if self._muted.when() >= until:
                return
            self._muted.cancel()
        self._muted = loop.call_at(until, self._unmute, resume)
        self.holds |= MUTED

    def _unmute(self, resume: Callable[[], None]) -> None:
        self._muted = None
        self.holds &= ~MUTED
        resume()

    # memory

    def reserve(self, receiver: Receiver, resume: Callable[[], None]) -> None:
        """Memory for the frame that is under way, before more of it is read; what is whole is handled soon."""
        wanted = self._frames.begun_bytes
        if wanted and wanted <= self._frames.unread_bytes:
            return
        if wanted <= RESERVED_BYTES_MIN:
            wanted = 0
        if wanted == self._reserved_bytes or self.holds & STARVED:
            return
        if self._reserved_bytes:
            self._memory.release(self._reserved_bytes, receiver)
            self._reserved_bytes = 0
        if wanted:
            if self._memory.reserve(wanted, receiver, lambda: self._memory_came(wanted, resume)):
                self._reserved_bytes = wanted
            else:
                self.holds |= STARVED

    def _memory_came(self, size: int, resume: Callable[[], None]) -> None:
        self.holds &= ~STARVED
        self._reserved_bytes = size
        asyncio.get_running_loop().call_soon(resume)

    def keep(self, size: int) -> None:
        """Bytes of a request that its handler needs until it is answered."""
        self._memory.keep(size)
        self._keep(size)

    def keep_large(self, size: int) -> None:
        """The same of a request that is decoded into many times its size."""
        self._memory.keep_large(size)
        self._keep(size)

    def _keep(self, size: int) -> None:
        self._kept_bytes += size
        if self._kept_bytes >= KEPT_BYTES_MAX:
            self.holds |= KEEPING

    def give_back(self, size: int) -> None:
        """Not after the connection was lost: then all was given back at once."""
        if size and self._kept_bytes:
            self._kept_bytes -= size
            self._memory.release(size)
            if self._kept_bytes < KEPT_BYTES_MAX:
                self.holds &= ~KEEPING

    def close(self, receiver: Receiver) -> None:
        if self._muted is not None:
            self._muted.cancel()
        self._memory.forget(receiver)
        self._memory.release(self._reserved_bytes + self._kept_bytes, receiver)
        self._reserved_bytes = self._kept_bytes = 0
