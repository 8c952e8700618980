"""The instruments of the table in OpenTelemetry, and what they say now as Prometheus' text.

Nothing is made before somebody asks: a broker that nobody watches does without OpenTelemetry's memory.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ottla.ports import Clock
from ottla.system import Threads
from ottla.telemetry.core.exposition import text
from ottla.telemetry.core.table import TABLE, Instrument, Kind, Sample

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

__all__ = ["Meters", "Read"]

log = logging.getLogger("ottla.telemetry")

FRESH_SECONDS = 1.0  # what was collected so recently is told again: asking often costs nothing

Read = Callable[[], Iterable[Sample]]
"""What an instrument says now. Called in a thread: it may read numbers and what never changes, nothing else."""


class Meters:
    """`readings` tells what there is to read by now, by the names of instruments."""

    def __init__(self, readings: Callable[[], Mapping[str, Read]], *, clock: Clock, threads: Threads) -> None:
        self._readings = readings
        self._now: Mapping[str, Read] = {}
        self._clock = clock
        self._threads = threads
        self._collecting = asyncio.Lock()
        self._reader: InMemoryMetricReader | None = None
        self._latest = b""
        self._latest_at = float("-inf")

    async def prometheus(self) -> bytes:
        async with self._collecting:
            if self._clock.monotonic() - self._latest_at > FRESH_SECONDS:
                self._now = self._readings()
                self._latest = await self._threads.run(self._collect)
                self._latest_at = self._clock.monotonic()
            return self._latest

    def _collect(self) -> bytes:
        if self._reader is None:
            self._reader = self._make_reader()
        data: Any = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        found = {metric.name: metric.data.data_points for scope in scopes for metric in scope.metrics}
        told = [
            (one, [(point.attributes, point.value) for point in found[one.name]]) for one in TABLE if one.name in found
        ]
        return text(told).encode()

    def _make_reader(self) -> "InMemoryMetricReader":
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader

        reader = InMemoryMetricReader()
        meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("ottla")
        for one in TABLE:
            make = meter.create_observable_counter if one.kind is Kind.COUNTER else meter.create_observable_gauge
            make(one.name, [functools.partial(self._observe, one)], unit=one.unit, description=one.help)
        return reader

    def _observe(self, instrument: Instrument, _: "CallbackOptions") -> "list[Observation]":
        from opentelemetry.metrics import Observation

        read = self._now.get(instrument.name)
        try:
            samples = list(read()) if read is not None else []
        except Exception:  # one number that cannot be read must not hide the others
            log.exception("%s cannot be read", instrument.name)
            return []
        return [Observation(number, dict(zip(instrument.labels, values, strict=True))) for values, number in samples]
