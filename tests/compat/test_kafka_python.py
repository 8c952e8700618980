"""kafka-python 3: pure Python, the newest request versions (without extra libraries it knows only gzip)."""

import time

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError
from support.librdkafka import make_topic

DEADLINE_S = 30.0


def consume(bootstrap: str, topic: str, count: int) -> list:  # type: ignore[type-arg]
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
    try:
        consumer.assign([TopicPartition(topic, 0)])
        records: list = []  # type: ignore[type-arg]
        deadline = time.monotonic() + DEADLINE_S
        while len(records) < count and time.monotonic() < deadline:
            for part in consumer.poll(timeout_ms=500).values():
                records += part
        return records
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize("idempotent", [False, True])
def test_produce_and_consume(bootstrap: str, name: str, codec: str | None, idempotent: bool) -> None:
    make_topic(bootstrap, name)
    producer = KafkaProducer(
        bootstrap_servers=bootstrap, compression_type=codec, acks="all", enable_idempotence=idempotent, linger_ms=5
    )
    headers = [("h", b"1"), ("h", b"2")]
    producer.send(name, b"first", key=b"k", headers=headers, timestamp_ms=1_700_000_000_123, partition=0)
    pending = [producer.send(name, b"%d" % i * 20, partition=0) for i in range(300)]
    assert [future.get(DEADLINE_S).offset for future in pending] == list(range(1, 301))
    producer.close()
    records = consume(bootstrap, name, 301)
    assert (records[0].key, records[0].value, records[0].timestamp) == (b"k", b"first", 1_700_000_000_123)
    assert list(records[0].headers) == headers
    assert [r.value for r in records[1:]] == [b"%d" % i * 20 for i in range(300)]


def test_offsets_and_times(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks=1)
    for i in range(5):
        producer.send(name, None, key=b"k", partition=0, timestamp_ms=1_700_000_000_000 + i * 100).get(DEADLINE_S)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    partition = TopicPartition(name, 0)
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 5}
    found = consumer.offsets_for_times({partition: 1_700_000_000_250})[partition]
    assert (found.offset, found.timestamp) == (3, 1_700_000_000_300)
    consumer.close()


def test_admin(bootstrap: str, name: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)])
    assert name in admin.list_topics()
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(name, num_partitions=3, replication_factor=1)])
    (described,) = admin.describe_topics([name])
    assert len(described["partitions"]) == 3
    assert [broker["broker_id"] for broker in admin.describe_cluster()["brokers"]] == [1]
    admin.delete_topics([name])
    deadline = time.monotonic() + DEADLINE_S
    while name in admin.list_topics():
        assert time.monotonic() < deadline
    admin.close()
