"""Expires acquisition locks: one timer for all share-partitions of this broker."""

import asyncio
import heapq
from itertools import count
from typing import Protocol

from ottla.ports import Clock

__all__ = ["Locks"]


class Expiring(Protocol):
    def expire(self, now: float) -> None:
        """Release locks whose deadline is not after `now`."""


class Locks:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, Expiring]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, deadline: float, held: Expiring) -> None:
        heapq.heappush(self._due, (deadline, next(self._order), held))
        if self._due[0][0] == deadline:
            self._arm()

    def check_now(self, held: Expiring) -> None:
        """Locks were restored, and may have expired by now."""
        self.add(self._clock.monotonic(), held)

    def stop(self) -> None:
        self._due.clear()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            delay = max(self._due[0][0] - self._clock.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        now = self._clock.monotonic()
        over: dict[Expiring, None] = {}
        while self._due and self._due[0][0] <= now:
            over[heapq.heappop(self._due)[2]] = None
        for held in over:
            held.expire(now)
        self._arm()
