"""Requests of a few megabytes that name very many things."""

import struct

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.frames import Connection, framed
from support.process import BrokerProcess
from support.raw_requests import fetch, header, list_offsets, metadata, text

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


def test_tagged_fields_count_too(attack):
    """Fifty million of them would fit into the largest frame."""
    tags = b"\xff\xff\xff\x07" + bytes(2) * 1_000_000
    with attack() as broker, Connection(broker.port) as connection:
        connection.send(framed(header(18, 3) + b"\0\2a\2b" + tags))
        assert connection.closed_by_peer()
