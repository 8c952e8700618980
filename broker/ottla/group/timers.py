"""Deadlines of many groups on one timer of the loop. A group has at most one: the earliest it asked for."""

import asyncio
import heapq
import logging
from collections.abc import Callable

from ottla.ports import Clock

__all__ = ["Timers"]

log = logging.getLogger("ottla.group")

RINGS_PER_TURN_MAX = 200  # then others have a turn of the loop


class Timers:
    def __init__(self, clock: Clock, ring: Callable[[str], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0.0

    def wake(self, group_id: str, at: float) -> None:
        """`ring` is called at this time, or at the earlier one that is set already."""
        if at >= self._due.get(group_id, float("inf")):
            return
        self._due[group_id] = at
        heapq.heappush(self._heap, (at, group_id))
        self._arm()

    def _arm(self) -> None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap or (self._handle is not None and self._armed_for == self._heap[0][0]):
            return
        self._disarm()
        self._armed_for = self._heap[0][0]
        seconds = max(self._armed_for - self._clock.monotonic(), 0.0)
        self._handle = asyncio.get_running_loop().call_later(seconds, self._time_is_up)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _time_is_up(self) -> None:
        self._handle = None
        now = self._clock.monotonic()
        for _ in range(RINGS_PER_TURN_MAX):
            if not self._heap or self._heap[0][0] > now:
                break
            at, group_id = heapq.heappop(self._heap)
            if self._due.get(group_id) == at:
                del self._due[group_id]
                self._ring_safely(group_id)
        self._arm()

    def _ring_safely(self, group_id: str) -> None:
        """A group that fails here does so alone: the deadlines of all others hang on this one timer."""
        try:
            self._ring(group_id)
        except Exception:
            log.exception("the deadline of group %.200s could not be met", group_id)

    def forget(self, group_id: str) -> None:
        self._due.pop(group_id, None)

    def stop(self) -> None:
        self._disarm()
        self._heap.clear()
        self._due.clear()
