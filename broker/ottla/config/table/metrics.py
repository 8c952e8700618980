"""Metrics and telemetry."""

# fmt: off
from ottla.config.table.words import CLUSTER_WIDE, INT, LIST, LONG, LOW, MIB, STRING, Setting, at_least, broker

SETTINGS: tuple[Setting, ...] = (
    broker("metric.reporters", LIST, ("org.apache.kafka.common.metrics.JmxReporter",), LOW, mode=CLUSTER_WIDE,
           effect="none",
           doc="Java classes that report metrics. Here metrics go out through OpenTelemetry."),
    broker("metrics.num.samples", INT, 2, LOW, valid=at_least(1), unit="samples", effect="none",
           doc="Samples per metric."),
    broker("metrics.recording.level", STRING, "INFO", LOW, effect="none",
           doc="Lowest level of metrics recorded: INFO, DEBUG or TRACE."),
    broker("metrics.sample.window.ms", LONG, 30_000, LOW, valid=at_least(1), effect="none",
           doc="Length of one sample."),
    broker("kafka.metrics.polling.interval.secs", INT, 10, LOW, valid=at_least(1), unit="seconds", effect="none",
           doc="Polling interval of kafka.metrics.reporters."),
    broker("kafka.metrics.reporters", LIST, (), LOW, effect="none",
           doc="Java classes for the broker's older metrics."),
    broker("telemetry.max.bytes", INT, MIB, LOW, valid=at_least(1), effect="none",
           doc="Largest push of client metrics."),
)
