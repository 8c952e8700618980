"""Resident memory: idle, with 1,000 partitions, and under load; each also with Kafka's heap left to grow from small.

(Under load with Kafka's own heap options is read while librdkafka produces.)
"""

import time
from collections.abc import Iterator

from support.process import BrokerProcess

from bench import differences
from bench.context import Context, fresh_topic
from bench.produce_librdkafka import produce
from bench.rows import MEMORY, Reading

PARTITIONS = 1000
# Idle means that what starting left to do is done.
SETTLE_S = 3.0
LOAD_PARTITIONS, LOAD_RECORD_BYTES, LOAD_RECORDS = 64, 1000, 1_500_000
GROWING = ", Kafka's heap grows from small"


def run(context: Context) -> Iterator[Reading]:
    with context.broker() as broker:
        yield from resting(broker, "", differences.HEAP_AT_START)
    with context.broker(growing_heap=True) as broker:
        yield from resting(broker, GROWING, differences.HEAP_GROWS)
        done = produce(broker, "load", LOAD_PARTITIONS, LOAD_RECORD_BYTES, context.scaled(LOAD_RECORDS))
        megabytes = done.broker_resident_bytes_max / 1e6
        yield Reading(f"memory under load{GROWING}", "MB", megabytes, MEMORY, differs=differences.HEAP_GROWS)


def resting(broker: BrokerProcess, heap: str, differs: str) -> Iterator[Reading]:
    time.sleep(SETTLE_S)
    yield Reading(f"memory idle{heap}", "MB", broker.resident_bytes() / 1e6, MEMORY, differs=differs)
    fresh_topic(broker, "many", PARTITIONS)
    time.sleep(SETTLE_S)
    megabytes = broker.resident_bytes() / 1e6
    yield Reading(f"memory with {PARTITIONS} partitions{heap}", "MB", megabytes, MEMORY, differs=differs)
