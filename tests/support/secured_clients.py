"""librdkafka at listeners that ask who it is."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

__all__ = ["round_trip", "why_not"]

DEADLINE_S = 30.0


def round_trip(conf: Mapping[str, str], topic: str, values: Sequence[bytes]) -> bool:
    """Send and read."""
    producer = Producer({**conf, "linger.ms": 2, "message.max.bytes": 2_000_000})
    failed: list[Any] = []
    for value in values:
        producer.produce(
            topic, value, partition=0, on_delivery=lambda error, _: failed.append(error) if error else None
        )
        producer.poll(0)
    assert producer.flush(DEADLINE_S) == 0 and not failed, failed
    consumer = Consumer({**conf, "group.id": f"g-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline, found = time.monotonic() + DEADLINE_S, []
    while len(found) < len(values):
        assert time.monotonic() < deadline, f"{len(found)} of {len(values)} came"
        if (message := consumer.poll(0.5)) is not None and message.error() is None:
            found.append(message.value())
    consumer.close()
    assert found == list(values)
    return True


def why_not(conf: Mapping[str, str], timeout_s: float = 3.0) -> str:
    """What librdkafka says of a connection that does not come about."""
    said: list[str] = []
    admin = AdminClient({**conf, "log_level": 0, "error_cb": lambda error: said.append(str(error))})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=timeout_s)
    admin.poll(0)
    return " ".join(said)
