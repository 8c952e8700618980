"""Small requests that made coordinators and logs work hard or keep much: groups by KIP-848, markers of transactions,
fetches behind a transaction that stays open."""

import struct
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from support.frames import Connection, framed
from support.librdkafka import make_topic, watermarks
from support.process import BrokerProcess
from support.raw_requests import (
    consumer_heartbeat,
    fetch,
    header,
    heartbeat_answer,
    text,
    write_txn_markers,
)
from support.waiting import eventually

TOPICS = 1500
NAMES_MAX = 1900  # of a request
MEMBERS = 101
ATTACK_SECONDS = 2.0
NONE, COORDINATOR_NOT_AVAILABLE = 0, 15
BROKER_SETTINGS = {"ottla.group.members.bytes.max": str(24 << 20)}

Attack = Callable[..., AbstractContextManager[BrokerProcess]]


@pytest.fixture(scope="module")
def topics(broker: BrokerProcess) -> list[bytes]:
    names = [f"subscribed-{number}" for number in range(TOPICS)]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for begin in range(0, TOPICS, 500):
        for future in admin.create_topics([NewTopic(name, 1, 1) for name in names[begin : begin + 500]]).values():
            future.result(60)
    return [name.encode() for name in names]


def beat(
    connection: Connection, group: str, member: str, epoch: int, names: list[bytes] | None = None
) -> tuple[int, int, bytes]:
    connection.send(consumer_heartbeat(group, member, epoch, names))
    return heartbeat_answer(connection.read_frame())


@pytest.fixture(scope="module")
def coordinator(broker: BrokerProcess) -> BrokerProcess:
    """It takes groups: its internal topic is there."""

    def joined() -> int:
        with Connection(broker.port) as connection:
            return int(beat(connection, "first", "m", 0, [b"nothing"])[0])

    with Connection(broker.port) as connection:
        connection.send(find_coordinator("first"))
        connection.read_frame()
    eventually(joined, lambda code: code == NONE)
    return broker


def find_coordinator(group: str) -> bytes:
    return framed(header(10, 1) + text(group) + b"\0")


def test_a_subscription_that_changes_again_and_again(
    attack: Attack, coordinator: BrokerProcess, topics: list[bytes], name: str
) -> None:
    """47 bytes each time, and the whole group's assignment was computed before the next request was read: 60 to 116 ms.

    Members leave out a topic each, so that no two subscribe to the same.
    """
    with Connection(coordinator.port, read_timeout_s=60) as connection:
        epochs = {}
        for member in range(MEMBERS):
            code, epochs[member], _ = beat(connection, name, f"m{member}", 0, [*topics[:member], *topics[member + 1 :]])
            assert code == NONE and epochs[member] >= 1
        with attack(coordinator):
            epoch, changes, ends = epochs.pop(0), 0, time.monotonic() + ATTACK_SECONDS
            while time.monotonic() < ends:
                code, epoch, _ = beat(connection, name, "m0", epoch, [topics[changes % TOPICS]])
                assert code == NONE
                changes += 1
        print(f"\n  {changes} changes of a subscription in {ATTACK_SECONDS:g} s")
        assert changes > 200, "each is answered at once"
        # It came first and got everything; it reports nothing as revoked, so others would wait for its time-out.
        assert beat(connection, name, "m0", -1)[0] == NONE

        def assigned() -> int:
            given = 0
            for member in epochs:
                code, epochs[member], assignment = beat(connection, name, f"m{member}", epochs[member])
                assert code == NONE
                given += assignment[:1] != b"\xff" and len(assignment) > 10
            return given

        eventually(assigned, lambda given: given > 0)


def test_members_of_kip_848_keep_a_limited_amount(attack: Attack, coordinator: BrokerProcess, name: str) -> None:
    """A subscription of half a megabyte each. What members of classic groups keep was bounded, but not these."""
    names = [b"%06d" % number + b"x" * 240 for number in range(NAMES_MAX)]
    with attack(coordinator), Connection(coordinator.port) as connection:
        codes = {beat(connection, name, f"m{member}", 0, names)[0] for member in range(150)}
    assert codes == {NONE, COORDINATOR_NOT_AVAILABLE}


def test_markers_for_a_partition_named_very_often(attack: Attack, broker: BrokerProcess, name: str) -> None:
    """One marker was written for each time that it is named."""
    requests = 50
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(name, b"a record", partition=0)
    producer.flush(20)
    with attack() as attacked, Connection(attacked.port, read_timeout_s=60) as connection:
        connection.send(write_txn_markers(name, NAMES_MAX) * requests)
        for _ in range(requests):
            assert len(connection.read_frame()) > NAMES_MAX * 6
    assert watermarks(broker.bootstrap, name)[1] <= 1 + requests


def test_fetches_that_wait_behind_an_open_transaction(attack: Attack, broker: BrokerProcess, name: str) -> None:
    """Each of them read all its partitions again for each record that came: 60 of them 0.7 s."""
    partitions, waiting = 1000, 40
    make_topic(broker.bootstrap, name, partitions=partitions)
    owner = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": name})
    owner.init_transactions(30)
    owner.begin_transaction()
    owner.produce(name, b"open", partition=0)
    owner.flush(20)
    other = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    asked = fetch(name, wait_ms=60_000, bytes_min=1, bytes_max=1 << 20, partitions=partitions, committed=True)
    with attack(), ExitStack() as stack:
        connections = [stack.enter_context(Connection(broker.port)) for _ in range(waiting)]
        for connection in connections:
            connection.send(asked)
        ends = time.monotonic() + ATTACK_SECONDS
        while time.monotonic() < ends:
            other.produce(name, b"behind it", partition=0)
            other.flush(20)
        owner.abort_transaction(30)
        for connection in connections:
            assert struct.unpack_from(">i", connection.read_frame(), 0)
