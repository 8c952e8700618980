"""librdkafka, one record at a time: produce, wait for the acknowledgement, again.

Arguments: bootstrap, topic, records. Prints percentiles in ms as JSON.
"""

import json
import sys
import time

from confluent_kafka import Producer
from connecting import connection

WARM_UP = 300


def main(bootstrap: str, topic: str, count: int) -> None:
    producer = Producer({**connection(bootstrap), "acks": "all", "linger.ms": 0})
    value = b"x" * 1000
    times = sorted([one(producer, topic, value) for _ in range(count + WARM_UP)][WARM_UP:])
    print(json.dumps({name: 1000 * times[int(len(times) * share)] for name, share in PERCENTILES.items()}))


PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def one(producer: Producer, topic: str, value: bytes) -> float:
    begin = time.perf_counter()
    producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
