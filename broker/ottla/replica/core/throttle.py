"""The rate at which throttled replicas are copied (KIP-73). Pure.

A topic names its throttled replicas; a broker limits the bytes per second that it sends and receives for those. In-sync
replicas are never throttled: they would fall out of the in-sync set.
"""

from collections.abc import Callable, Iterable

__all__ = ["UNLIMITED", "TokenBucket", "is_throttled"]

UNLIMITED = 2**63 - 1
EVERY_REPLICA = "*"
BURST_S = 1.0


class TokenBucket:
    """`rate` returns bytes per second; it is called each time because it can change.

    A take may exceed the available bytes; the debt is paid off before the next one.
    """

    def __init__(self, rate: Callable[[], int]) -> None:
        self._rate = rate
        self._tokens = 0.0
        self._filled_at: float | None = None

    def wait_s(self, now: float) -> float:
        """How long to wait before the next take; 0 if it is possible now."""
        rate = self._rate()
        if rate >= UNLIMITED:
            self._filled_at = None
            return 0.0
        self._fill(rate, now)
        if self._tokens > 0:
            return 0.0
        return (1 - self._tokens) / rate if rate > 0 else BURST_S

    def take(self, size: int, now: float) -> None:
        rate = self._rate()
        if rate < UNLIMITED:
            self._fill(rate, now)
            self._tokens -= size

    def _fill(self, rate: int, now: float) -> None:
        if self._filled_at is None:
            self._tokens = rate * BURST_S
        else:
            self._tokens = min(self._tokens + (now - self._filled_at) * rate, rate * BURST_S)
        self._filled_at = now


def is_throttled(replicas: Iterable[str], *, partition: int, broker_id: int) -> bool:
    """`replicas` as the topic's setting has them: `partition:broker`, …, or `*` for all."""
    listed = frozenset(replicas)
    return EVERY_REPLICA in listed or f"{partition}:{broker_id}" in listed
