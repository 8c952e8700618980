"""Schedules large requests on the loop: they work in slices, and the loop serves others in between.

All slices of a turn of the loop share one budget (`Pace`), however many requests work in slices. The first slice of a
request, and a small answer, need no `Turn`. A request that needs more takes the Turn, one at a time, which limits
memory to that of one request. It never waits for anything else, such as new records, while it holds the Turn.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

__all__ = ["AnswerBytes", "LongWork", "Pace", "Turn", "sliced"]

SLICE_SECONDS = 0.003

T = TypeVar("T")


class AnswerBytes(Protocol):
    """Memory of answers, those that are being made among them."""

    def change(self, by_bytes: int) -> None: ...
    async def until_plenty(self) -> None:
        """Until clients have taken most of what was made for them, or it took too long."""


class Turn:
    """`async with Turn(lock)`; or taken by one, and given back by another, at most once."""

    __slots__ = ("_is_taken", "_lock")

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._is_taken = False

    async def take(self) -> bool:
        """False: it was taken before."""
        if self._is_taken:
            return False
        await self._lock.acquire()
        self._is_taken = True
        return True

    def give_back(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._lock.release()

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, *_: object) -> None:
        self.give_back()


class Pace:
    """Before each element, `if pace.is_due: await pace.rest()` gives the loop to others whenever a slice is over.

    Of one loop: there is one slice in each of its turns, for the one who works first or has waited for it. Requests
    that have not begun yet go before those that had a slice. On virtual time a slice never ends: histories replay
    exactly, however fast the machine is.
    """

    __slots__ = ("_beginning", "_begun", "_is_scheduled", "_now", "_until")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: float | None = None  # nobody has worked in this turn of the loop
        self._is_scheduled = False
        self._beginning: deque[asyncio.Future[None]] = deque()
        self._begun: deque[asyncio.Future[None]] = deque()

    @property
    def is_due(self) -> bool:
        if self._until is None:
            self._until = self._now() + SLICE_SECONDS
            self._schedule()
            return False
        return self._now() >= self._until

    async def rest(self, *, begins: bool = False) -> None:
        waiting = asyncio.get_running_loop().create_future()
        (self._beginning if begins else self._begun).append(waiting)
        self._schedule()  # also when nobody has worked in this turn: the one that rests may have waited for its turn
        await waiting
        self._until = self._now() + SLICE_SECONDS

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._until, self._is_scheduled = None, False
        while self._beginning or self._begun:
            waiting = (self._beginning or self._begun).popleft()
            if not waiting.done():
                self._until = 0.0  # the slice is promised
                waiting.set_result(None)
                self._schedule()
                return


@dataclass(frozen=True, slots=True)
class LongWork:
    """What all that work in slices share on a node. An answer has at most `answer_bytes_max`."""

    pace: Pace
    answers: AnswerBytes
    answer_bytes_max: int
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the one whose turn it is."""


async def sliced(items: Iterable[T], pace: Pace) -> AsyncIterator[T]:
    """For one who has a turn."""
    for item in items:
        if pace.is_due:
            await pace.rest()
        yield item
