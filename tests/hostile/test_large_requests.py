"""Requests that name very many things, or whose answers do."""

import struct
import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from support.frames import Connection, framed
from support.process import BrokerProcess
from support.raw_requests import fetch, fetch_in_session, header, list_offsets, metadata, text

ROUNDS = 3
MANY = 49_000  # within the limit
TOO_MANY = 500_000


@pytest.fixture(scope="module")
def topics(broker: BrokerProcess) -> int:
    """Topics enough for an answer of more parts than one write takes."""
    admin, count = AdminClient({"bootstrap.servers": broker.bootstrap}), 3000
    for begin in range(0, count, 500):
        made = admin.create_topics([NewTopic(f"topic-{n}", 1, 1) for n in range(begin, begin + 500)])
        for future in made.values():
            future.result(60)
    return count


def describe_configs(names: list[str]) -> bytes:
    resources = b"".join(struct.pack(">b", 2) + text(name) + struct.pack(">i", -1) for name in names)
    return framed(header(32, 3) + struct.pack(">i", len(names)) + resources + b"\1\1")


REQUESTS = {
    "list-offsets": lambda count: list_offsets("nobody", partitions=count),
    "list-offsets-by-time": lambda count: list_offsets("topic-1", partitions=count, timestamp=1),
    "fetch": lambda count: fetch("nobody", wait_ms=0, bytes_min=0, bytes_max=1, partitions=count),
    "metadata": lambda count: metadata([f"t{n}" for n in range(count)]),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_many_elements_are_worked_off_in_slices(attack, topics, kind):
    with attack() as broker, Connection(broker.port) as connection:
        for _ in range(ROUNDS):
            connection.send(REQUESTS[kind](MANY))
            assert len(connection.read_frame()) > MANY * 10


@pytest.mark.parametrize("kind", REQUESTS)
def test_too_many_elements_are_refused_before_they_are_read(attack, kind):
    with attack() as broker:
        for _ in range(ROUNDS):
            with Connection(broker.port) as connection:
                connection.send(REQUESTS[kind](TOO_MANY))
                assert connection.closed_by_peer()
    assert "more than 50000 elements" in broker.log_tail()


def test_the_answer_to_a_few_kilobytes_is_made_in_slices(attack, topics):
    """Some hundred thousand settings, in more parts than one write takes."""
    names = [f"topic-{n}" for n in range(topics)]
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        connection.send(describe_configs(names))
        assert len(connection.read_frame()) > topics * 1000


def test_a_large_session_is_read_in_slices(attack):
    """Thirty requests make a session of 57,000 partitions; then every few bytes ask for all of them. As one slice that
    took a quarter of a second."""
    step = 1_900
    with attack() as broker, Connection(broker.port) as connection:
        session_id = 0
        for epoch in range(30):
            partitions = range(epoch * step, (epoch + 1) * step)
            connection.send(fetch_in_session("nobody", partitions, session_id=session_id, epoch=epoch))
            session_id = struct.unpack_from(">i", connection.read_frame(), 10)[0]
            assert session_id
        for epoch in range(30, 40):
            connection.send(fetch_in_session("nobody", range(0), session_id=session_id, epoch=epoch))
            assert len(connection.read_frame()) > 30 * step * 10


def test_consumers_of_very_many_partitions_do_not_wait_for_each_other(broker, name):
    """Each has a large fetch under way that waits for records; it was half a second for each of them.

    One topic: librdkafka 2.16 crashes when brokers answer while it still adds topics (it walks through its list of
    topics without the lock, in rd_kafka_topic_find_by_topic_id).
    """
    partitions = 3000
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(60)
    settings = {"bootstrap.servers": broker.bootstrap, "enable.auto.commit": False}
    consumers = [Consumer({**settings, "group.id": f"wide-{number}"}) for number in range(6)]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    try:
        for consumer in consumers:
            consumer.assign([TopicPartition(name, n, 0) for n in range(partitions)])
        worst_s = 0.0
        for number in range(10):
            partition, begun = number * 7, time.monotonic()
            producer.produce(name, b"news", partition=partition)
            producer.flush(20)
            found = [consumer.poll(30) for consumer in consumers]
            assert all(one is not None and one.error() is None and one.partition() == partition for one in found)
            if number:  # before, they had to find their partitions
                worst_s = max(worst_s, time.monotonic() - begun)
        print(f"\n  {len(consumers)} consumers of {partitions} partitions: {worst_s * 1000:.0f} ms at worst")
        assert worst_s < 2.0
    finally:
        for consumer in consumers:
            consumer.close()


def create_topics(count: int) -> bytes:
    """Version 5: the answer has every setting of every topic. Nothing is made."""
    topic = struct.pack(">ih", -1, -1) + b"\1\1\0"
    named = b"".join(bytes([len(name) + 1]) + name + topic for name in (b"new-%d" % n for n in range(count)))
    return framed(header(19, 5) + b"\0" + compact_length(count) + named + struct.pack(">ib", 10_000, 1) + b"\0")


def delete_topics(names: list[str]) -> bytes:
    return framed(
        header(20, 1) + struct.pack(">i", len(names)) + b"".join(map(text, names)) + struct.pack(">i", 60_000)
    )


def compact_length(count: int) -> bytes:
    raw, out = count + 1, b""
    while raw >= 0x80:
        out += bytes([raw & 0x7F | 0x80])
        raw >>= 7
    return out + bytes([raw])


def test_topics_that_could_be_made_are_described_in_slices(attack):
    """Ten thousand topics and their settings: three seconds when it was one slice."""
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        connection.send(create_topics(9_900))
        assert len(connection.read_frame()) > 9_900 * 1000


def test_topics_are_deleted_in_slices(attack, topics):
    """All in one request. For each of them the broker looked at all its partitions: 97 seconds for ten thousand."""
    with attack() as broker, Connection(broker.port, read_timeout_s=60) as connection:
        connection.send(delete_topics([f"topic-{n}" for n in range(topics)]))
        assert len(connection.read_frame()) > topics * 8


def test_tagged_fields_count_too(attack):
    """Fifty million of them would fit into the largest frame."""
    tags = b"\xff\xff\xff\x07" + bytes(2) * 1_000_000
    with attack() as broker, Connection(broker.port) as connection:
        connection.send(framed(header(18, 3) + b"\0\2a\2b" + tags))
        assert connection.closed_by_peer()
