"""Transactions of 100 records of 1 KB, acks=all: throughput, and what a commit takes; one broker, and three."""

from collections.abc import Iterator

from support.fleet import FleetOf
from support.librdkafka import make_topic
from support.process import BrokerProcess

from bench.client_process import ClientRun, client_program, run_client
from bench.context import Context
from bench.rows import PRODUCE_RATE, TAIL_LATENCY, Reading

PARTITIONS, RECORD_BYTES = 6, 1000
# Producers, and seconds of warm-up. With many the broker and not the way to it and back is the limit, and Kafka's JVM
# has compiled everything when the one alone comes.
RUNS = {8: 6, 1: 2}
MEASURED_S, QUICK_S = 7, 2


def run(context: Context) -> Iterator[Reading]:
    with context.broker() as broker:
        yield from measured(context, broker, "", {})
    with context.fleet() as fleet:
        yield from measured(context, fleet, "fleet of 3, ", {"replicas": 3, "min_insync_replicas": "2"})


def measured(
    context: Context, brokers: BrokerProcess | FleetOf, where: str, replication: dict[str, object]
) -> Iterator[Reading]:
    for producers, warm_up_s in RUNS.items():
        topic = f"of-{producers}"
        make_topic(brokers.bootstrap, topic, partitions=PARTITIONS, **replication)  # type: ignore[arg-type]
        done = produce(context, brokers, topic, producers, warm_up_s)
        name = f"{where}transactions of 100 × {RECORD_BYTES} B, librdkafka, producers: {producers}"
        figures = done.json()
        yield Reading(name, "MB/s", figures["bytes_per_s"] / 1e6, PRODUCE_RATE, done.limited_by)
        if producers == 1:
            for percentile, goal in (("p50", None), ("p99", TAIL_LATENCY)):
                yield Reading(f"{where}commit of a transaction {percentile}", "ms", figures[percentile], goal)


def produce(
    context: Context, brokers: BrokerProcess | FleetOf, topic: str, producers: int, warm_up_s: int
) -> ClientRun:
    warm_up_s, seconds = (QUICK_S, QUICK_S) if context.quick else (warm_up_s, MEASURED_S)
    sizes = (PARTITIONS, RECORD_BYTES, producers, warm_up_s, seconds)
    return run_client(
        brokers, client_program("transactions", brokers.bootstrap, topic, *sizes), warm_up_s=float(warm_up_s)
    )
