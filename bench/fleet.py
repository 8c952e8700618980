"""Three brokers in three racks, replication factor 3, acks=all: throughput, CPU, latency, memory, death of a leader.

The leader dies at default settings, and with the same session time-out on both sides.
"""

from collections.abc import Iterator

from support.failover import kill_leader_under_load
from support.fleet import FleetOf
from support.librdkafka import make_topic
from support.polling import PollingLibrdkafka
from support.steady import SteadyLibrdkafka

from bench import differences
from bench.client_process import ClientRun, client_program, run_client
from bench.context import Context
from bench.latency import one_at_a_time
from bench.rows import (
    FAILOVER,
    FAILOVER_EQUAL_SESSIONS,
    FLEET_CPU_PER_GB,
    FLEET_TAIL_LATENCY,
    MEMORY,
    PRODUCE_RATE,
    Goal,
    Reading,
)

REPLICAS, MIN_IN_SYNC = 3, "2"
PARTITIONS = 6
RECORD_BYTES, RECORDS = 1000, 600_000
WARM_UP_RECORDS = 600_000
LATENCY_RECORDS = 8_000
GOALS = {"p99": FLEET_TAIL_LATENCY}
FAILOVER_RECORDS_PER_S, FAILOVER_RECORDS = 500, 1000
# Ottla's defaults, given to both.
EQUAL_SESSIONS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
NAME = f"fleet of 3, produce librdkafka {RECORD_BYTES} B × {PARTITIONS}p"


def run(context: Context) -> Iterator[Reading]:
    with context.fleet() as fleet:
        produce(fleet, "warm-up", context.scaled(WARM_UP_RECORDS))
        done = produce(fleet, "measured", context.scaled(RECORDS))
        figures = done.json()
        yield Reading(
            NAME,
            "MB/s",
            figures["bytes"] / figures["seconds"] / 1e6,
            PRODUCE_RATE,
            done.limited_by,
            differences.VALIDATION,
        )
        cpu_s_per_gb = done.broker_cpu_s / (figures["bytes"] / 1e9)
        yield Reading(
            f"CPU of all brokers, {NAME}", "CPU s/GB", cpu_s_per_gb, FLEET_CPU_PER_GB, differs=differences.VALIDATION
        )
        memory_mb = done.broker_resident_bytes_max / len(fleet.members) / 1e6
        name = "fleet of 3, memory of a broker under load"
        yield Reading(name, "MB", memory_mb, MEMORY, differs=differences.HEAP_AT_START)
        yield from latency(fleet, context.scaled(LATENCY_RECORDS))
        yield from failover(fleet, "kill -9 of a leader", FAILOVER, differences.SESSIONS)
    with context.fleet(EQUAL_SESSIONS) as fleet:
        what = "kill -9 of a leader at equal session time-outs"
        yield from failover(fleet, what, FAILOVER_EQUAL_SESSIONS, differences.EQUAL_SESSIONS)


def produce(fleet: FleetOf, topic: str, count: int) -> ClientRun:
    make_topic(fleet.bootstrap, topic, partitions=PARTITIONS, replicas=REPLICAS, min_insync_replicas=MIN_IN_SYNC)
    return run_client(fleet, client_program("producer", fleet.bootstrap, topic, PARTITIONS, RECORD_BYTES, count))


def latency(fleet: FleetOf, count: int) -> Iterator[Reading]:
    topic = make_topic(fleet.bootstrap, "one", replicas=REPLICAS, min_insync_replicas=MIN_IN_SYNC)
    run_client(fleet, one_at_a_time(fleet.bootstrap, topic, count // 2))  # warm-up
    done = run_client(fleet, one_at_a_time(fleet.bootstrap, topic, count))
    for percentile, milliseconds in done.json().items():
        yield Reading(f"fleet of 3, latency one at a time {percentile}", "ms", milliseconds, GOALS.get(percentile))


def failover(fleet: FleetOf, what: str, goal: Goal, differs: str) -> Iterator[Reading]:
    """kill -9 of the leader: how long producer and consumer did not get on."""
    topic = make_topic(fleet.bootstrap, "bereft", replicas=REPLICAS, min_insync_replicas=MIN_IN_SYNC)
    fleet.wait_in_sync()
    producer = SteadyLibrdkafka(fleet.bootstrap, topic, partitions=1, rate=FAILOVER_RECORDS_PER_S)
    consumer = PollingLibrdkafka(fleet.bootstrap, topic, partitions=1)
    try:
        _, gaps = kill_leader_under_load(fleet, topic, producer, consumer, records=FAILOVER_RECORDS)
        producer.finish()
    finally:
        consumer.close()
    for client, gap_s in gaps.items():
        yield Reading(f"fleet of 3, {what}, {client} waits", "s", gap_s, goal, differs=differs)
