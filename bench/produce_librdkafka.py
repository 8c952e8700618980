"""librdkafka producer, acks=all: 1 KB and 100 B records, 1 and 64 partitions; 1 KB compressed by lz4 and by zstd."""

from collections.abc import Iterator

from support.process import BrokerProcess

from bench import differences
from bench.client_process import ClientRun, client_program, run_client
from bench.context import Context, fresh_topic
from bench.rows import CPU_PER_GB, MEMORY, PRODUCE_RATE, Reading

GB = 1e9
RECORDS = {1000: 1_500_000, 100: 5_000_000}
# Seconds of full load on Kafka: its JVM has compiled everything by then.
WARM_UP_RECORDS = 1_000_000
CODECS, COMPRESSED_RECORDS, COMPRESSED_PARTITIONS = ("lz4", "zstd"), 600_000, 6


def run(context: Context) -> Iterator[Reading]:
    highest = 0
    with context.broker() as broker:
        warm_up(context, broker)
        for size in (1000, 100):
            for partitions in (1, 64):
                done = produce(broker, f"p{size}-{partitions}", partitions, size, context.scaled(RECORDS[size]))
                highest = max(highest, done.broker_resident_bytes_max)
                yield from readings(f"produce librdkafka {size} B × {partitions}p", done, size)
        for codec in CODECS:
            count = context.scaled(COMPRESSED_RECORDS)
            done = produce(broker, codec, COMPRESSED_PARTITIONS, 1000, count, codec=codec)
            highest = max(highest, done.broker_resident_bytes_max)
            yield from readings(f"produce librdkafka 1000 B {codec} × {COMPRESSED_PARTITIONS}p", done, 1000)
    yield Reading("memory under load", "MB", highest / 1e6, MEMORY, differs=differences.HEAP_AT_START)


def warm_up(context: Context, broker: BrokerProcess) -> None:
    """A JVM compiles its hot path first; nobody measures that in production either."""
    for partitions in (1, 64):
        produce(broker, f"warm-up-{partitions}", partitions, 1000, context.scaled(WARM_UP_RECORDS))


def produce(
    broker: BrokerProcess, topic: str, partitions: int, size: int, count: int, *, codec: str = "none"
) -> ClientRun:
    fresh_topic(broker, topic, partitions)
    return run_client(broker, client_program("producer", broker.bootstrap, topic, partitions, size, count, codec))


def readings(name: str, done: ClientRun, size: int) -> Iterator[Reading]:
    figures, differs = done.json(), differences.VALIDATION
    unit, amount = ("records/s", figures["records"]) if size < 1000 else ("MB/s", figures["bytes"] / 1e6)
    yield Reading(name, unit, amount / figures["seconds"], PRODUCE_RATE, done.limited_by, differs)
    cpu_s_per_gb = done.broker_cpu_s / (figures["bytes"] / GB)
    yield Reading(f"broker CPU, {name}", "CPU s/GB", cpu_s_per_gb, CPU_PER_GB, differs=differs)
