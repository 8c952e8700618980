"""In a pod: sends numbered records, reads every record of the topic back in a group, prints both as JSON.

round_trip.py BOOTSTRAP TOPIC PARTITIONS RECORDS PREFIX
"""

import json
import sys
import time

from confluent_kafka import Consumer, KafkaError, Producer

DEADLINE_S = 60.0


def send(bootstrap: str, topic: str, *, partitions: int, values: list[str]) -> list[str]:
    """The values whose delivery was confirmed."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"})
    confirmed: list[str] = []

    def report(error: KafkaError | None, message: object) -> None:
        if error is None:
            confirmed.append(message.value().decode())  # type: ignore[attr-defined]

    for number, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=number % partitions, on_delivery=report)
    producer.flush(DEADLINE_S)
    return confirmed


def read(bootstrap: str, topic: str, *, partitions: int, group: str) -> list[str]:
    settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe([topic])
    values: list[str] = []
    ended: set[int] = set()
    deadline = time.monotonic() + DEADLINE_S
    while len(ended) < partitions and time.monotonic() < deadline:
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                values.append(message.value().decode())
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return values


if __name__ == "__main__":
    bootstrap, topic, partitions, records, prefix = sys.argv[1:]
    values = [f"{prefix}-{number}" for number in range(int(records))]
    confirmed = send(bootstrap, topic, partitions=int(partitions), values=values)
    everything = read(bootstrap, topic, partitions=int(partitions), group=f"{topic}-{prefix}")
    print(json.dumps({"confirmed": confirmed, "read": everything}))
