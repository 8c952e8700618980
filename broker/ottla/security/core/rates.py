"""How fast somebody is, and how long they must pause to be within a limit. Pure: the time comes with every call.

`SampledRate` is Kafka's: values are summed in samples of a window's length, the last few of which count. Time that has
not passed yet counts as if it had, so that a burst after a silence is not taken for a high rate.
"""

from collections import deque
from typing import Final

__all__ = ["PAUSE_MS_MAX", "SampledRate", "TokenBucket"]

PAUSE_MS_MAX: Final = 2**31 - 1  # what the field of an answer holds


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """Per second. `samples` windows of `window_ms` count, and one more that overlaps their beginning."""

    __slots__ = ("_kept", "_samples", "_window_ms")

    def __init__(self, *, samples: int, window_ms: int) -> None:
        self._samples = samples
        self._window_ms = window_ms
        self._kept: deque[_Sample] = deque()

    def record(self, value: float, now_ms: int) -> None:
        kept = self._kept
        if not kept or now_ms - kept[-1].start_ms >= self._window_ms:
            kept.append(_Sample(now_ms))
            if len(kept) > self._samples + 1:
                kept.popleft()
        current = kept[-1]
        current.value += value
        current.last_ms = now_ms

    def rate(self, now_ms: int) -> float:
        self._forget_old(now_ms)
        return sum(sample.value for sample in self._kept) * 1000 / self._span_ms(now_ms)

    def pause_ms(self, limit: float, now_ms: int) -> int:
        """How long to stay silent so that the rate comes down to the limit; 0 when it is within."""
        rate = self.rate(now_ms)
        return _whole_ms((rate - limit) / limit * self._span_ms(now_ms)) if rate > limit else 0

    def is_idle(self, now_ms: int) -> bool:
        self._forget_old(now_ms)
        return not self._kept

    def _forget_old(self, now_ms: int) -> None:
        kept, age_ms = self._kept, self._samples * self._window_ms
        while kept and now_ms - kept[0].last_ms >= age_ms:
            kept.popleft()

    def _span_ms(self, now_ms: int) -> int:
        elapsed_ms = now_ms - self._kept[0].start_ms if self._kept else 0
        missing = self._samples - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)


class TokenBucket:
    """For work that comes in bursts: `limit` per second, saved up for `burst_s` seconds at most. Starts full."""

    __slots__ = ("_tokens", "_updated_ms", "burst_s")

    def __init__(self, *, burst_s: float) -> None:
        self.burst_s = burst_s
        self._tokens = float("inf")
        self._updated_ms = 0

    def take(self, count: float, limit: float, now_ms: int) -> None:
        self._refill(limit, now_ms)
        self._tokens -= count

    def pause_ms(self, limit: float, now_ms: int) -> int:
        """How long until the bucket is not overdrawn any more."""
        self._refill(limit, now_ms)
        return _whole_ms(-self._tokens / limit * 1000) if self._tokens < 0 else 0

    def _refill(self, limit: float, now_ms: int) -> None:
        burst = limit * self.burst_s
        self._tokens = min(burst, self._tokens + limit * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms


def _whole_ms(pause_ms: float) -> int:
    """By a limit near zero it is infinite, which cannot be rounded."""
    return round(min(pause_ms, PAUSE_MS_MAX))
