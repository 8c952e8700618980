"""How fast replicas that are being moved may be copied (KIP-73). Pure.

A topic says which of its replicas are throttled, a broker how many bytes per second it sends and takes for those. A
replica that is in sync is never held back: it would fall out of the in-sync set.
"""

from collections.abc import Callable, Iterable

__all__ = ["UNLIMITED", "TokenBucket", "is_throttled"]

UNLIMITED = 2**63 - 1
EVERY_REPLICA = "*"
BURST_S = 1.0


class TokenBucket:
    """`rate` gives bytes per second, asked each time since it can change at any time.

    What is taken may exceed what is there: the debt has to be paid off before more is given.
    """

    def __init__(self, rate: Callable[[], int]) -> None:
        self._rate = rate
        self._tokens = 0.0
        self._filled_at: float | None = None

    def wait_s(self, now: float) -> float:
        """How long to wait before more may be taken; 0 when it may be now."""
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
