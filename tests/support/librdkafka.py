"""confluent-kafka (librdkafka) as the tests need it: send all, read all, ask the admin."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE_S = 30.0
RETRY_S = 0.1
LEADER_UNKNOWN = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
Headers = list[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Sent:
    """A record as the producer meant it."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: Headers = field(default_factory=list)
    timestamp_ms: int = 0


class Acknowledgements:
    """Collects delivery reports: offsets by position of the record, and errors."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.errors: dict[int, KafkaError] = {}

    def expect(self, position: int) -> Any:
        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.offsets[position] = message.offset()
            else:
                self.errors[position] = error

        return report


def send(bootstrap: str, topic: str, records: Iterable[Sent], **settings: Any) -> Acknowledgements:
    """Produce all and wait for every delivery report; setting names have underscores for dots.

    Idempotent unless the test chooses its own acks: retries while a new topic's leader appears would reorder.
    """
    base = {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": "acks" not in settings}
    producer = Producer({**base, **dotted(settings)})
    return send_with(producer, topic, records)


def send_with(producer: Producer, topic: str, records: Iterable[Sent]) -> Acknowledgements:
    reports = Acknowledgements()
    for position, record in enumerate(records):
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            headers=record.headers,
            timestamp=record.timestamp_ms,
            on_delivery=reports.expect(position),
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0, "records still unacknowledged at the deadline"
    return reports


def read(
    bootstrap: str, topic: str, partition: int = 0, *, start: int = OFFSET_BEGINNING, **settings: Any
) -> list[Message]:
    """All records from `start` to the present end of the partition, by assign()."""
    consumer = make_consumer(bootstrap, **settings)
    try:
        consumer.assign([TopicPartition(topic, partition, start)])
        return read_to_end(consumer)
    finally:
        consumer.close()


def make_consumer(bootstrap: str, **settings: Any) -> Consumer:
    return Consumer(consumer_settings(bootstrap, **settings))


def consumer_settings(bootstrap: str, **settings: Any) -> dict[str, Any]:
    no_group = {"group.id": "unused", "enable.auto.commit": False}
    # A short wait makes the end of a partition known soon.
    base = {"bootstrap.servers": bootstrap, "enable.partition.eof": True, "check.crcs": True, "fetch.wait.max.ms": 50}
    return {**base, **no_group, **dotted(settings)}


def read_to_end(consumer: Consumer) -> list[Message]:
    """Polls an assigned consumer until the broker says that the partition ends."""
    messages: list[Message] = []
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        for message in consumer.consume(500, 0.2):
            if message.error() is None:
                messages.append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return messages
            elif not message.error().retriable():
                raise AssertionError(f"consumer: {message.error()}")
    raise AssertionError(f"no end of partition within {DEADLINE_S} s after {len(messages)} records")


def watermarks(bootstrap: str, topic: str, partition: int = 0, **settings: Any) -> tuple[int, int]:
    """Earliest and end offset; asks again while a broker that just started does not lead the partition yet."""
    consumer = make_consumer(bootstrap, **settings)
    deadline = time.monotonic() + DEADLINE_S
    try:
        while True:
            try:
                return consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=DEADLINE_S)
            except KafkaException as failed:
                if failed.args[0].code() not in LEADER_UNKNOWN or time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_S)
    finally:
        consumer.close()


def make_topic(bootstrap: str, name: str, *, partitions: int = 1, replicas: int = 1, **config: Any) -> str:
    """Creates it and waits until Metadata shows all its leaders; config names have underscores for dots."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dotted(config))
    admin.create_topics([new], request_timeout=DEADLINE_S)[name].result(DEADLINE_S)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        known = admin.list_topics(name, timeout=DEADLINE_S).topics[name]
        if len(known.partitions) == partitions and all(p.leader >= 0 for p in known.partitions.values()):
            return name
    raise AssertionError(f"topic {name} has no leaders")


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}
