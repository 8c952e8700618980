"""librdkafka producer, as fast as it goes.

Arguments: bootstrap, topic, partitions, record bytes, records, codec (or "none"). Prints JSON; bytes are counted before
compression.
"""

import json
import sys
import time
from random import Random

from confluent_kafka import Producer
from connecting import connection

BATCH = 1000


def main(bootstrap: str, topic: str, partitions: int, size: int, count: int, codec: str) -> None:
    failures = 0

    def report(error: object, _: object) -> None:
        nonlocal failures
        failures += error is not None

    queue = {"queue.buffering.max.messages": 500_000, "queue.buffering.max.kbytes": 262_144}
    # Only failures are reported: a call into Python for each record would measure the client.
    reports = {"delivery.report.only.error": True, "on_delivery": report}
    base = {**connection(bootstrap), "acks": "all", "linger.ms": 5, "compression.type": codec}
    producer = Producer({**base, **queue, **reports})
    producer.list_topics(topic)
    values = values_for(codec, size)
    messages = [{"value": values[i % len(values)], "partition": i % partitions} for i in range(BATCH)]
    begin = time.perf_counter()
    for _ in range(count // BATCH):
        send(producer, topic, messages)
    left = producer.flush(120)
    seconds = time.perf_counter() - begin
    assert left == 0 and failures == 0, f"{left} records left, {failures} failed"
    print(json.dumps({"seconds": seconds, "records": count, "bytes": count * size}))


def values_for(codec: str, size: int) -> list[bytes]:
    """One value for all, or, to be compressed, different ones of random hexadecimal digits: about half remains."""
    if codec == "none":
        return [bytes(i % 251 for i in range(size))]
    random = Random(1)
    return [random.randbytes(size // 2).hex().encode().ljust(size, b".") for _ in range(BATCH)]


def send(producer: Producer, topic: str, messages: list[dict[str, object]]) -> None:
    """All of them; what does not fit into the full queue is tried again."""
    while messages:
        producer.produce_batch(topic, messages)
        messages = [message for message in messages if message.pop("_error", None) is not None]
        producer.poll(0.02 if messages else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), codec=(sys.argv[6:] or ["none"])[0])
