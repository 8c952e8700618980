"""librdkafka at a fixed rate, whatever the broker does: latency counts from the moment a record was due.

Arguments: bootstrap, topic, records per second, seconds. Prints percentiles in ms as JSON.
"""

import json
import sys
import time

from confluent_kafka import Producer
from connecting import connection

WARM_UP_S = 2.0
# A call into Python for each record would disturb the schedule.
SAMPLE_EVERY = 20
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def main(bootstrap: str, topic: str, rate: int, seconds: int) -> None:
    settings = {"acks": "all", "linger.ms": 1, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({**connection(bootstrap), **settings})
    producer.list_topics(topic)
    value, times = b"x" * 1000, []
    begin, sent = time.perf_counter(), 0

    def sampled(due: float):  # type: ignore[no-untyped-def]
        def report(error: object, _: object) -> None:
            assert error is None, error
            if due - begin > WARM_UP_S:
                times.append(time.perf_counter() - due)

        return report

    while (now := time.perf_counter()) - begin < seconds + WARM_UP_S:
        while sent < (now - begin) * rate:
            extra = {"on_delivery": sampled(begin + sent / rate)} if sent % SAMPLE_EVERY == 0 else {}
            producer.produce(topic, value, partition=0, **extra)
            sent += 1
        producer.poll(0.0005)
    assert producer.flush(60) == 0
    times.sort()
    print(json.dumps({name: 1000 * times[int(len(times) * share)] for name, share in PERCENTILES.items()}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
