"""Transactional clients as the tests need them."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from support.librdkafka import DEADLINE_S, dotted


def producer(bootstrap: str, transactional_id: str, **settings: Any) -> Producer:
    """A librdkafka producer whose transactional id is initiated."""
    base = {
        "bootstrap.servers": bootstrap,
        "transactional.id": transactional_id,
        "linger.ms": 2,
        "reconnect.backoff.max.ms": 500,
    }
    made = Producer({**base, **dotted(settings)})
    made.init_transactions(DEADLINE_S)
    return made


def write(made: Producer, topic: str, values: Iterable[str], *, partitions: int = 1) -> None:
    """Inside a transaction, and until the broker has them."""
    for number, value in enumerate(values):
        made.produce(topic, value=value.encode(), partition=number % partitions)
    assert made.flush(DEADLINE_S) == 0


def transact(made: Producer, topic: str, values: Iterable[str], *, commit: bool = True, partitions: int = 1) -> None:
    made.begin_transaction()
    write(made, topic, values, partitions=partitions)
    end = made.commit_transaction if commit else made.abort_transaction
    end(DEADLINE_S)


def read_all(bootstrap: str, topic: str, *, partitions: int = 1, isolation: str = "read_committed") -> list[str]:
    """Every value up to the present end of each partition, as this isolation level sees it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values: list[str] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        message = consumer.poll(DEADLINE_S)
        assert message is not None, f"no end of {topic} within {DEADLINE_S} s; {len(values)} values so far"
        if (error := message.error()) is None:
            values.append((message.value() or b"").decode())
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition() or 0)
        else:
            raise AssertionError(error)
    consumer.close()
    return values
