"""Java's ShareConsumerPerformance: four members of one share group drain a topic, accepting what they get."""

import re
from collections.abc import Iterator

from support.java import java_command
from support.sharing import give_settings, turn_on

from bench.client_process import JAVA_WARM_UP_S, run_client
from bench.context import Context
from bench.produce_java import HEAP
from bench.produce_librdkafka import produce
from bench.rows import CONSUME_RATE, CPU_PER_GB, Reading

PARTITIONS, MEMBERS = 4, 4
RECORD_BYTES, RECORDS = 1000, 1_000_000
NAME = f"share group of {MEMBERS}, Java, {RECORD_BYTES} B × {PARTITIONS}p"
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


def run(context: Context) -> Iterator[Reading]:
    count = context.scaled(RECORDS)
    with context.broker(SETTINGS) as broker:
        turn_on(broker.bootstrap)
        produce(broker, "shared", PARTITIONS, RECORD_BYTES, count)
        for group in ("warm-up", "measured"):
            give_settings(broker.bootstrap, group, auto_offset_reset="earliest")
            done = run_client(broker, drain(broker.bootstrap, group, count), warm_up_s=JAVA_WARM_UP_S)
        yield Reading(NAME, "MB/s", rate(done.output) * RECORD_BYTES / 1e6, CONSUME_RATE, done.limited_by)
        cpu_s_per_gb = done.broker_cpu_s / (count * RECORD_BYTES / 1e9)
        yield Reading(f"broker CPU, {NAME}", "CPU s/GB", cpu_s_per_gb, CPU_PER_GB)


def drain(bootstrap: str, group: str, count: int) -> list[str]:
    what = ("--topic", "shared", "--group", group, "--messages", str(count), "--threads", str(MEMBERS))
    tool = "org.apache.kafka.tools.ShareConsumerPerformance"
    return java_command(tool, "--bootstrap-server", bootstrap, *what, "--hide-header", options=HEAP)


def rate(output: str) -> float:
    """From its only line: begin, end, MB, MB/s, records/s, records, milliseconds; joining is a part of it."""
    summary = re.search(r"^\d{4}-\S+ \S+, \S+ \S+, [\d.]+, [\d.]+, ([\d.]+), \d+, \d+$", output, re.M)
    assert summary, f"no summary from ShareConsumerPerformance:\n{output[-1000:]}"
    return float(summary[1])
