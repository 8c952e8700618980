"""librdkafka produces and consumes (assign, no groups)."""

import time

import pytest
from confluent_kafka import OFFSET_END, KafkaError, Producer, TopicPartition
from support.librdkafka import (
    DEADLINE_S,
    Sent,
    make_consumer,
    make_topic,
    read,
    send,
    send_with,
    watermarks,
)

BROKER_SETTINGS = {"message.max.bytes": "20000000", "replica.fetch.max.bytes": "20000000"}
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


@pytest.mark.parametrize("codec", CODECS)
def test_everything_about_a_record_survives(bootstrap: str, name: str, codec: str) -> None:
    make_topic(bootstrap, name)
    now = int(time.time() * 1000)
    sent = [
        Sent(b"plain" * 50, timestamp_ms=now),
        Sent(b"", key=b"", timestamp_ms=now + 1),
        Sent(None, key=b"tombstone", timestamp_ms=now + 2),
        Sent(b"with headers", headers=[("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)], timestamp_ms=now - 5),
        Sent("žluťoučký".encode() * 100, key="kůň".encode(), timestamp_ms=now + 3),
    ]
    reports = send(bootstrap, name, sent, compression_type=codec, acks="all")
    assert [reports.offsets[i] for i in range(5)] == [0, 1, 2, 3, 4]
    got = read(bootstrap, name)
    assert [(m.key(), m.value(), m.headers() or [], m.timestamp()[1]) for m in got] == [
        (r.key, r.value, r.headers, r.timestamp_ms) for r in sent
    ]
    assert [m.offset() for m in got] == [0, 1, 2, 3, 4]
    assert {m.leader_epoch() for m in got} == {0}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(bootstrap: str, name: str, acks: str) -> None:
    make_topic(bootstrap, name, partitions=3)
    reports = send(bootstrap, name, [Sent(b"%d" % i, partition=i % 3) for i in range(3000)], acks=acks)
    assert not reports.errors
    if acks == "0":
        # Nothing confirmed the arrival; the same connection's order makes an acknowledged record come last.
        send(bootstrap, name, [Sent(b"end", partition=p) for p in range(3)], acks="all")
        ends = [watermarks(bootstrap, name, p) for p in range(3)]
        assert all(low == 0 and high >= 1 for low, high in ends)
        return
    for partition in range(3):
        values = [m.value() for m in read(bootstrap, name, partition)]
        assert values == [b"%d" % i for i in range(partition, 3000, 3)]


@pytest.mark.parametrize("codec", CODECS)
def test_idempotent_producer_of_many_batches(bootstrap: str, name: str, codec: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    records = [Sent(b"%06d" % i + b"x" * 200, key=b"k%d" % (i % 7), partition=i % 2) for i in range(10_000)]
    reports = send(bootstrap, name, records, enable_idempotence=True, compression_type=codec, batch_size=20_000)
    assert not reports.errors
    for partition in range(2):
        got = read(bootstrap, name, partition)
        assert [m.value() for m in got] == [r.value for r in records if r.partition == partition]
        assert [m.offset() for m in got] == list(range(5000))


def test_big_message(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, max_message_bytes=16_000_000)
    value = bytes(range(256)) * 40_000
    send(bootstrap, name, [Sent(b"before"), Sent(value), Sent(b"after")], message_max_bytes=16_000_000)
    # A fetch limit below the batch size must still deliver the whole first batch.
    got = read(bootstrap, name, fetch_message_max_bytes=1000, max_partition_fetch_bytes=1000)
    assert [m.value() for m in got] == [b"before", value, b"after"]


def test_too_large_message_is_refused_and_the_connection_kept(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, max_message_bytes=10_000)
    disconnects: list[KafkaError] = []
    settings = {"bootstrap.servers": bootstrap, "message.max.bytes": 1_000_000, "error_cb": disconnects.append}
    producer = Producer(settings)
    reports = send_with(producer, name, [Sent(b"x" * 100_000)])
    assert reports.errors[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert send_with(producer, name, [Sent(b"small")]).offsets == {0: 0}
    assert not disconnects


def test_offsets_for_times_and_watermarks(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"%d" % i, timestamp_ms=1_700_000_000_000 + 1000 * i) for i in range(100)], linger_ms=0)
    assert watermarks(bootstrap, name) == (0, 100)
    consumer = make_consumer(bootstrap)

    def at(timestamp: int) -> int:
        (found,) = consumer.offsets_for_times([TopicPartition(name, 0, timestamp)], timeout=DEADLINE_S)
        return int(found.offset)

    assert at(1_600_000_000_000) == 0
    assert at(1_700_000_000_000) == 0
    assert at(1_700_000_050_000) == 50
    assert at(1_700_000_049_001) == 50
    assert at(1_700_000_099_000) == 99
    assert at(1_700_000_099_001) == OFFSET_END
    consumer.close()


def test_start_in_the_middle_of_a_batch(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"%d" % i) for i in range(500)], linger_ms=200, compression_type="lz4")
    assert [m.offset() for m in read(bootstrap, name, start=321)] == list(range(321, 500))


def test_waiting_consumer_gets_a_record_at_once(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    consumer = make_consumer(bootstrap, fetch_wait_max_ms=8000, enable_partition_eof=False)
    consumer.assign([TopicPartition(name, 0, 0)])
    assert consumer.poll(1.0) is None
    begin = time.monotonic()
    send(bootstrap, name, [Sent(b"now")])
    message = consumer.poll(15)
    assert message is not None and message.value() == b"now"
    assert time.monotonic() - begin < 4, "the waiting fetch was not woken"
    consumer.close()


def test_offset_out_of_range_resets_by_policy(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"%d" % i) for i in range(10)])
    assert len(read(bootstrap, name, start=5000, auto_offset_reset="earliest")) == 10
    assert read(bootstrap, name, start=5000, auto_offset_reset="latest") == []
    consumer = make_consumer(bootstrap, auto_offset_reset="error")
    consumer.assign([TopicPartition(name, 0, 5000)])
    message = consumer.poll(DEADLINE_S)
    assert message is not None and message.error().code() == KafkaError._AUTO_OFFSET_RESET
    consumer.close()


def test_unknown_partition_and_topic(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    reports = send(bootstrap, name, [Sent(b"x", partition=7)], message_timeout_ms=3000)
    assert reports.errors[0].code() in (KafkaError._UNKNOWN_PARTITION, KafkaError._MSG_TIMED_OUT)
    reports = send(
        bootstrap, f"{name}-absent", [Sent(b"x")], message_timeout_ms=3000, allow_auto_create_topics=False,
        topic_metadata_propagation_max_ms=500,
    )  # fmt: skip
    assert reports.errors


def test_many_partitions_in_one_fetch_session(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=40)
    send(bootstrap, name, [Sent(b"%d" % i, partition=i % 40) for i in range(4000)])
    consumer = make_consumer(bootstrap, enable_partition_eof=False)
    consumer.assign([TopicPartition(name, p, 0) for p in range(40)])
    seen: dict[int, list[bytes]] = {p: [] for p in range(40)}
    deadline = time.monotonic() + DEADLINE_S
    while sum(map(len, seen.values())) < 4000 and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.5):
            assert message.error() is None
            seen[message.partition()].append(message.value())
    assert seen == {p: [b"%d" % i for i in range(p, 4000, 40)] for p in range(40)}
    consumer.close()
