"""Resident memory: idle, and with 1,000 partitions. (Under load is read while librdkafka produces.)"""

import time
from collections.abc import Iterator

from bench.context import Context, fresh_topic
from bench.rows import MEMORY, Reading

PARTITIONS = 1000
# Idle means that what starting left to do is done.
SETTLE_S = 3.0


def run(context: Context) -> Iterator[Reading]:
    with context.broker() as broker:
        time.sleep(SETTLE_S)
        yield Reading("memory idle", "MB", broker.resident_bytes() / 1e6, MEMORY)
        fresh_topic(broker, "many", PARTITIONS)
        time.sleep(SETTLE_S)
        yield Reading(f"memory with {PARTITIONS} partitions", "MB", broker.resident_bytes() / 1e6, MEMORY)
