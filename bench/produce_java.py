"""Java's ProducerPerformance, acks=all: default settings, and 256 KiB batches; 1 and 64 partitions."""

import re
from collections.abc import Iterator

from support.java import java_command

from bench import differences
from bench.client_process import JAVA_WARM_UP_S, ClientRun, run_client
from bench.context import Context, fresh_topic
from bench.rows import CPU_PER_GB, PRODUCE_RATE, Goal, Reading

GB = 1e9
RECORD_BYTES = 1000
SETTINGS: dict[str, tuple[list[str], int]] = {
    "defaults": ([], 500_000),
    "256 KiB batches": (["batch.size=262144", "linger.ms=5"], 1_500_000),
}
WARM_UP_RECORDS = 1_000_000
# As kafka-producer-perf-test.sh gives it.
HEAP = ("-Xmx512M",)


def run(context: Context) -> Iterator[Reading]:
    with context.broker() as broker:
        bootstrap = broker.bootstrap
        run_client(broker, perf(bootstrap, fresh_topic(broker, "warm-up", 64), context.scaled(WARM_UP_RECORDS), []))
        for label, (settings, count) in SETTINGS.items():
            for partitions in (1, 64):
                topic = fresh_topic(broker, f"{label.replace(' ', '-')}-{partitions}", partitions)
                command = perf(bootstrap, topic, context.scaled(count), settings)
                done = run_client(broker, command, warm_up_s=JAVA_WARM_UP_S)
                yield from readings(f"produce Java {label} × {partitions}p", done, context.scaled(count))


def perf(bootstrap: str, topic: str, count: int, settings: list[str]) -> list[str]:
    size = ["--num-records", str(count), "--record-size", str(RECORD_BYTES), "--throughput", "-1"]
    properties = ["--producer-props", f"bootstrap.servers={bootstrap}", "acks=all", *settings]
    tool = "org.apache.kafka.tools.ProducerPerformance"
    return java_command(tool, "--topic", topic, *size, *properties, options=HEAP)


def readings(
    name: str, done: ClientRun, count: int, rate: Goal = PRODUCE_RATE, cpu: Goal = CPU_PER_GB
) -> Iterator[Reading]:
    """From its last line: `500000 records sent, 51234.5 records/sec (48.86 MB/sec), …`."""
    summary = re.search(rf"^{count} records sent, ([\d.]+) records/sec", done.output, re.M)
    assert summary, f"no summary from ProducerPerformance:\n{done.output[-1000:]}"
    differs = differences.VALIDATION
    yield Reading(name, "MB/s", float(summary[1]) * RECORD_BYTES / 1e6, rate, done.limited_by, differs)
    cpu_s_per_gb = done.broker_cpu_s / (count * RECORD_BYTES / GB)
    yield Reading(f"broker CPU, {name}", "CPU s/GB", cpu_s_per_gb, cpu, differs=differs)
