"""Deadlines of many state machines on one timer of the loop. Each has at most one: the earliest it requested."""

import asyncio
import heapq
import logging
from collections.abc import Callable

from ottla.ports import Clock

__all__ = ["Deadlines"]

log = logging.getLogger("ottla.coordination")

DUE_PER_TURN_MAX = 200  # then others have a turn of the loop


class Deadlines:
    def __init__(self, clock: Clock, on_due: Callable[[str], None]) -> None:
        self._clock = clock
        self._on_due = on_due
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}
        self._handle: asyncio.TimerHandle | None = None
        self._armed_for = 0.0

    def wake(self, key: str, at: float) -> None:
        """`on_due` is called at this time, or at the earlier one that is set already."""
        if at >= self._due.get(key, float("inf")):
            return
        self._due[key] = at
        heapq.heappush(self._heap, (at, key))
        self._arm()

    def _arm(self) -> None:
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap or (self._handle is not None and self._armed_for == self._heap[0][0]):
            return
        self._disarm()
        self._armed_for = self._heap[0][0]
        seconds = max(self._armed_for - self._clock.monotonic(), 0.0)
        self._handle = asyncio.get_running_loop().call_later(seconds, self._expired)

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _expired(self) -> None:
        self._handle = None
        now = self._clock.monotonic()
        for _ in range(DUE_PER_TURN_MAX):
            if not self._heap or self._heap[0][0] > now:
                break
            at, key = heapq.heappop(self._heap)
            if self._due.get(key) == at:
                del self._due[key]
                self._call_safely(key)
        self._arm()

    def _call_safely(self, key: str) -> None:
        """An error in one state machine is logged; the others share this timer and must not lose their deadlines."""
        try:
            self._on_due(key)
        except Exception:
            log.exception("%.200s failed at its deadline", key)

    def forget(self, key: str) -> None:
        self._due.pop(key, None)

    def stop(self) -> None:
        self._disarm()
        self._heap.clear()
        self._due.clear()
