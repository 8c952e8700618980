"""librdkafka producer, acks=all: 1 KB and 100 B records, 1 and 64 partitions."""

from collections.abc import Iterator

from support.process import BrokerProcess

from bench.client_process import ClientRun, client_program, run_client
from bench.context import Context, fresh_topic
from bench.rows import CPU_PER_GB, MEMORY, PRODUCE_RATE, Reading

GB = 1e9
RECORDS = {1000: 1_500_000, 100: 5_000_000}
# Seconds of full load on Kafka: its JVM has compiled everything by then.
WARM_UP_RECORDS = 1_000_000


def run(context: Context) -> Iterator[Reading]:
    highest = 0
    with context.broker() as broker:
        warm_up(context, broker)
        for size in (1000, 100):
            for partitions in (1, 64):
                done = produce(broker, f"p{size}-{partitions}", partitions, size, context.scaled(RECORDS[size]))
                highest = max(highest, done.broker_resident_bytes_max)
                yield from readings(f"produce librdkafka {size} B × {partitions}p", done, size)
    yield Reading("memory under load", "MB", highest / 1e6, MEMORY)


def warm_up(context: Context, broker: BrokerProcess) -> None:
    """A JVM compiles its hot path first; nobody measures that in production either."""
    for partitions in (1, 64):
        produce(broker, f"warm-up-{partitions}", partitions, 1000, context.scaled(WARM_UP_RECORDS))


def produce(broker: BrokerProcess, topic: str, partitions: int, size: int, count: int) -> ClientRun:
    fresh_topic(broker, topic, partitions)
    return run_client(broker, client_program("producer", broker.bootstrap, topic, partitions, size, count))


def readings(name: str, done: ClientRun, size: int) -> Iterator[Reading]:
    figures = done.json()
    if size < 1000:
        yield Reading(name, "records/s", figures["records"] / figures["seconds"], PRODUCE_RATE, done.limited_by)
    else:
        yield Reading(name, "MB/s", figures["bytes"] / figures["seconds"] / 1e6, PRODUCE_RATE, done.limited_by)
    yield Reading(f"broker CPU, {name}", "CPU s/GB", done.broker_cpu_s / (figures["bytes"] / GB), CPU_PER_GB)
