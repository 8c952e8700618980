"""Which brokers are alive, by their heartbeats. Pure.

sessions.begin(brokers, now)      a new controller gives everyone a fresh session
sessions.heard(broker, now)       a heartbeat came, of a broker that was well then or some seconds before
sessions.suspect(broker, now)     its process is said to have ended: it gets a moment to contradict
sessions.extend(seconds)          nobody listened for so long
sessions.expired(now)             whose session is over; they are forgotten until heard again
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
        """`stuck_s`: for how long its data path has not moved; it counts as silence."""
        self._ends[broker] = now - stuck_s + self._timeout_s

    def is_stuck(self, stuck_s: float) -> bool:
        """For so long that it counts as gone."""
        return stuck_s >= self._timeout_s

    def suspect(self, broker: int, now: float) -> None:
        if broker in self._ends:
            self._ends[broker] = min(self._ends[broker], now + self._suspicion_s)

    def forget(self, broker: int) -> None:
        self._ends.pop(broker, None)

    def extend(self, seconds: float) -> None:
        """The controller itself did not run for so long: no broker loses its session for that."""
        self._ends = {broker: end + seconds for broker, end in self._ends.items()}

    def expired(self, now: float) -> list[int]:
        over = sorted(broker for broker, end in self._ends.items() if end <= now)
        for broker in over:
            del self._ends[broker]
        return over

    def deadline(self) -> float:
        """When the next session ends unless its broker is heard."""
        return min(self._ends.values(), default=math.inf)

    @property
    def alive(self) -> Set[int]:
        return self._ends.keys()
