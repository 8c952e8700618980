"""librdkafka consumer catching up over 2 GB that another client left (assign, one partition)."""

from collections.abc import Iterator

from bench.client_process import client_program, run_client
from bench.context import Context
from bench.produce_librdkafka import produce
from bench.rows import CONSUME_RATE, CPU_PER_GB, Reading

RECORD_BYTES = 1000
RECORDS = 2_000_000
PASSES = 3  # a pass takes three seconds and swings by a fifth with the client
NAME = f"consume librdkafka {RECORD_BYTES} B, 2 GB"


def run(context: Context) -> Iterator[Reading]:
    count = context.scaled(RECORDS)
    with context.broker() as broker:
        produce(broker, "preloaded", 1, RECORD_BYTES, count)
        catch_up = client_program("consumer", broker.bootstrap, "preloaded", count)
        run_client(broker, catch_up)  # for the JVM to compile the path
        for _ in range(PASSES):
            done = run_client(broker, catch_up)
            figures = done.json()
            yield Reading(NAME, "MB/s", figures["bytes"] / figures["seconds"] / 1e6, CONSUME_RATE, done.limited_by)
            yield Reading(f"broker CPU, {NAME}", "CPU s/GB", done.broker_cpu_s / (figures["bytes"] / 1e9), CPU_PER_GB)
