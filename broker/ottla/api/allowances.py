"""Client quotas on this broker: the image's quotas, rates measured here, and the resulting throttle times.

Without any quota this costs a request one test of `any_for_clients`.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.metadata.decisions.client_quotas import IP
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.ports import Clock
from ottla.security.core.quota_limits import client_limit, connection_limit
from ottla.security.core.rates import SampledRate, TokenBucket

__all__ = ["Allowance", "Allowances", "Meter"]

ENTRIES_MAX: Final = 10_000
UNLIMITED: Final = 2**31 - 1
SLOWEST: Final = 0.1  # connections per second, where the setting says 0


class Meter:
    """One quota and the measured rate."""

    __slots__ = ("_clock", "_rate", "limit", "pause_ms_max", "window_bytes")

    def __init__(self, rate: SampledRate, limit: float, clock: Clock, *, window_s: float, pause_ms_max: int) -> None:
        self._rate = rate
        self._clock = clock
        self.limit = limit
        self.pause_ms_max = pause_ms_max
        self.window_bytes = int(min(limit * window_s, 2**31 - 1))
        """The largest amount that exceeds the limit for at most one window."""

    def charge(self, value: float) -> int:
        """Record it. Returns the throttle time in milliseconds."""
        now_ms = _now_ms(self._clock)
        self._rate.record(value, now_ms)
        return min(self._rate.pause_ms(self.limit, now_ms), self.pause_ms_max)

    def take_back(self, value: float) -> None:
        self._rate.record(-value, _now_ms(self._clock))


class Mutations:
    """Changes of topics and partitions, which come in bursts."""

    __slots__ = ("_bucket", "_clock", "limit")

    def __init__(self, bucket: TokenBucket, limit: float, clock: Clock) -> None:
        self._bucket = bucket
        self._clock = clock
        self.limit = limit

    def charge(self, count: int) -> None:
        self._bucket.take(count, self.limit, _now_ms(self._clock))

    def pause_ms(self) -> int:
        return self._bucket.pause_ms(self.limit, _now_ms(self._clock))


class Allowance:
    """Of one user with one client id. None: no limit."""

    __slots__ = ("fetch", "mutations", "produce", "request")

    def __init__(
        self, produce: Meter | None, fetch: Meter | None, request: Meter | None, mutations: Mutations | None
    ) -> None:
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.mutations = mutations


class Allowances:
    """`setting` returns the current value of a broker setting, `of_listener` that of one listener alone, or None."""

    def __init__(
        self,
        clock: Clock,
        setting: Callable[[str], Any],
        image: Image,
        *,
        of_listener: Callable[[str, str], Any] = lambda listener, name: None,
    ) -> None:
        self._clock = clock
        self._setting = setting
        self._of_listener = of_listener
        self._samples: int = setting("quota.window.num")
        self._window_s: int = setting("quota.window.size.seconds")
        self._burst_s: float = setting("controller.quota.window.num") * setting("controller.quota.window.size.seconds")
        self._quotas = image.client_quotas
        self._rates: dict[tuple[str, tuple[str, str]], SampledRate] = {}
        self._buckets: dict[tuple[str, str], TokenBucket] = {}
        self._known: dict[tuple[str, str], Allowance | None] = {}
        self._refresh()

    def image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        if changes.client_quotas:
            self._quotas = new.client_quotas
            self._refresh()

    def _refresh(self) -> None:
        self.any_for_clients = any(kind != IP for entity in self._quotas for kind, _ in entity)
        self._known.clear()

    def of(self, user: str, client_id: str) -> Allowance | None:
        key = (user, client_id)
        if key not in self._known:
            if len(self._known) >= ENTRIES_MAX:
                self._known.clear()
            self._known[key] = self._make(user, client_id)
        return self._known[key]

    def _make(self, user: str, client_id: str) -> Allowance | None:
        produce = self._meter("producer_byte_rate", user, client_id)
        fetch = self._meter("consumer_byte_rate", user, client_id)
        # As in Kafka, the throttle time is at most one window.
        request = self._meter("request_percentage", user, client_id, pause_ms_max=self._window_s * 1000)
        mutations = self._mutations(user, client_id)
        if produce is None and fetch is None and request is None and mutations is None:
            return None
        return Allowance(produce, fetch, request, mutations)

    def _meter(self, key: str, user: str, client_id: str, *, pause_ms_max: int = 2**31 - 1) -> Meter | None:
        limit = client_limit(self._quotas, key, user=user, client_id=client_id)
        if limit is None:
            return None
        rate = self._rate(key, limit.measured)
        window_s = (self._samples - 1 or 1) * self._window_s
        return Meter(rate, limit.value, self._clock, window_s=window_s, pause_ms_max=pause_ms_max)

    def _mutations(self, user: str, client_id: str) -> Mutations | None:
        limit = client_limit(self._quotas, "controller_mutation_rate", user=user, client_id=client_id)
        if limit is None:
            return None
        if len(self._buckets) >= ENTRIES_MAX:
            self._buckets.clear()
        bucket = self._buckets.setdefault(limit.measured, TokenBucket(burst_s=self._burst_s))
        return Mutations(bucket, limit.value, self._clock)

    def _rate(self, key: str, measured: tuple[str, str]) -> SampledRate:
        """The measured rate is kept when a limit changes."""
        rate = self._rates.get((key, measured))
        if rate is None:
            if len(self._rates) >= ENTRIES_MAX:
                self._forget_idle()
            rate = SampledRate(samples=self._samples, window_ms=self._window_s * 1000)
            self._rates[key, measured] = rate
        return rate

    def _forget_idle(self) -> None:
        now_ms = _now_ms(self._clock)
        for key in [key for key, rate in self._rates.items() if rate.is_idle(now_ms)]:
            del self._rates[key]
        self._known.clear()

    # connections

    def connection_pause_ms(self, address: str, listener: str) -> int:
        """How long a new connection from this address has to wait, by the limits of the broker, of its listener and of
        the address."""
        of_all: int = self._setting("max.connection.creation.rate")
        pause_ms = self._count_connection("", max(of_all, SLOWEST)) if of_all < UNLIMITED else 0
        of_listener = self._of_listener(listener, "max.connection.creation.rate")
        if of_listener is not None:
            pause_ms = max(pause_ms, self._count_connection(f"listener {listener}", max(of_listener, SLOWEST)))
        limit = connection_limit(self._quotas, address)
        return max(pause_ms, self._count_connection(address, limit) if limit is not None else 0)

    def _count_connection(self, address: str, limit: float) -> int:
        rate, now_ms = self._rate("connection_creation_rate", ("", address)), _now_ms(self._clock)
        rate.record(1, now_ms)
        return rate.pause_ms(limit, now_ms)


def _now_ms(clock: Clock) -> int:
    return int(clock.monotonic() * 1000)
