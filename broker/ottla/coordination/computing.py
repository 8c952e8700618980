"""Runs work that would hold the loop in a thread: one piece at a time, at most half of the time.

The thread runs Python, so it and the loop take turns with the interpreter's lock. After each piece it pauses for as
long as the piece took, which leaves the loop half of the time however many pieces wait.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.ports import Clock
from ottla.system import Threads

__all__ = ["Computing"]

PAUSE_SECONDS_MAX = 5.0


class Computing:
    def __init__(self, threads: Threads, clock: Clock) -> None:
        self._threads = threads
        self._clock = clock
        self._turn = asyncio.Lock()

    async def run(self, begin: Callable[[], Callable[[], Any] | None]) -> Any:
        """`begin` is called on the loop when the thread is free, and returns the work. The work's result; None without
        work."""
        await self._turn.acquire()
        pause_s = 0.0
        try:
            work = begin()
            if work is None:
                return None
            started = self._clock.monotonic()
            try:
                return await self._threads.run(work)
            finally:
                pause_s = min(self._clock.monotonic() - started, PAUSE_SECONDS_MAX)
        finally:
            asyncio.get_running_loop().call_later(pause_s, self._turn.release)
