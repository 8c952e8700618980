"""Requests whose answers nobody takes, and requests that claim more than they send."""

import struct
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from confluent_kafka import Producer
from support.frames import Connection
from support.process import BrokerProcess
from support.raw_requests import fetch, header, metadata

PRODUCE = 0  # the only API whose requests may be so large
FETCH_BYTES_MAX = 50 << 20
HELD_SECONDS = 3.0
IDLE_BYTES_MAX = 16 * 1024


@pytest.fixture(scope="module")
def large_topic(broker: BrokerProcess, led_topic: Callable[..., str]) -> str:
    """Sixty megabytes in one partition."""
    topic = led_topic("large", broker)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "queue.buffering.max.kbytes": 200000})
    for _ in range(60):
        for _ in range(16):
            producer.produce(topic, bytes(65000), partition=0)
        producer.flush(30)
    return topic


def large_fetch(topic: str, *, wait_ms: int = 0, bytes_min: int = 1) -> bytes:
    return fetch(topic, wait_ms=wait_ms, bytes_min=bytes_min, bytes_max=FETCH_BYTES_MAX)


@pytest.mark.parametrize(("wait_ms", "bytes_min"), [(0, 1), (500, 1 << 30)], ids=["at-once", "out-of-reach"])
def test_pipelined_fetches_that_nobody_reads(attack, large_topic, wait_ms, bytes_min):
    with attack() as broker, Connection(broker.port) as connection:
        connection.send(large_fetch(large_topic, wait_ms=wait_ms, bytes_min=bytes_min) * 60)
        time.sleep(HELD_SECONDS)  # the attack is that nothing happens


def test_many_connections_that_read_nothing(attack, large_topic):
    with attack() as broker:
        connections = [Connection(broker.port) for _ in range(100)]
        for connection in connections:
            connection.send(large_fetch(large_topic) * 3)
        time.sleep(HELD_SECONDS)
        for connection in connections:
            connection.socket.close()


def test_a_large_answer_is_whole_when_it_is_read_slowly(broker, large_topic):
    with Connection(broker.port) as connection:
        connection.send(large_fetch(large_topic) * 2)
        first = connection.read_frame()
        assert first[4:] == connection.read_frame()[4:]
        assert FETCH_BYTES_MAX - (2 << 20) < len(first) < FETCH_BYTES_MAX + 1000


def test_frames_that_claim_much_and_send_some(attack):
    """Two hundred connections that claim to produce 99 MiB each; forty of them also send a megabyte of it."""
    with attack() as broker:
        connections = [Connection(broker.port) for _ in range(200)]
        for number, connection in enumerate(connections):
            connection.send(struct.pack(">i", 99 << 20) + header(PRODUCE, 9) + bytes(6))
            if number % 5 == 0:
                connection.socket.settimeout(0.2)
                with suppress(TimeoutError):  # it waits for memory: what the kernel does not take stays here
                    connection.send(bytes(1 << 20))
        time.sleep(HELD_SECONDS)
        for connection in connections:
            connection.socket.close()


def test_idle_connections_cost_next_to_nothing(broker):
    """They took 67 KB each when every one had a buffer of its own."""
    count = 500
    before = broker.resident_bytes()
    connections = [Connection(broker.port) for _ in range(count)]
    for connection in connections:  # each has spoken once, and half of a request lies there
        connection.send(metadata(["nobody"]) + metadata(["nobody"])[:10])
        connection.read_frame()
    each = (broker.resident_bytes() - before) / count
    print(f"\n  {each / 1024:.1f} KB for each of {count} idle connections")
    for connection in connections:
        connection.socket.close()
    assert each < IDLE_BYTES_MAX
