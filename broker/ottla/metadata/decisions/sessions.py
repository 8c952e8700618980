"""Sessions of brokers, by their heartbeats. Pure.

sessions.begin(brokers, now)      a new controller starts a session for every broker
sessions.heard(broker, now)       a heartbeat arrived, whose broker's data path moved at most some seconds before
sessions.suspect(broker, now)     its process seems to have ended: shorten its session
sessions.extend(seconds)          the controller itself was paused for so long
sessions.expired(now)             brokers with an expired session; they are removed until heard again
"""

import math
from collections.abc import Iterable, Set

__all__ = ["Sessions"]


class Sessions:
    def __init__(self, *, timeout_s: float, suspicion_s: float) -> None:
        self._timeout_s = timeout_s
        self._suspicion_s = suspicion_s
        self._ends: dict[int, float] = {}

    def begin(self, brokers: Iterable[int], now: float) -> None:
        self._ends = dict.fromkeys(brokers, now + self._timeout_s)

    def heard(self, broker: int, now: float, *, stuck_s: float = 0.0) -> None:
        """`stuck_s`: how long its data path has not moved; that time counts as silence."""
        self._ends[broker] = now - stuck_s + self._timeout_s

    def is_stuck(self, stuck_s: float) -> bool:
        """Stuck for longer than a session."""
        return stuck_s >= self._timeout_s

    def suspect(self, broker: int, now: float) -> None:
        if broker in self._ends:
            self._ends[broker] = min(self._ends[broker], now + self._suspicion_s)

    def forget(self, broker: int) -> None:
        self._ends.pop(broker, None)

    def extend(self, seconds: float) -> None:
        """The controller was paused for so long: no session expires because of that."""
        self._ends = {broker: end + seconds for broker, end in self._ends.items()}

    def expired(self, now: float) -> list[int]:
        over = sorted(broker for broker, end in self._ends.items() if end <= now)
        for broker in over:
            del self._ends[broker]
        return over

    def deadline(self) -> float:
        """When the next session expires."""
        return min(self._ends.values(), default=math.inf)

    @property
    def alive(self) -> Set[int]:
        return self._ends.keys()
