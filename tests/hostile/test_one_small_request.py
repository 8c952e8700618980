"""One request of a few bytes, which a client may send by its rights, must not take the broker from everybody."""

import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta

import pytest
from confluent_kafka.admin import AdminClient
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from ottla.errors import Code
from support.frames import Connection, framed
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.raw_batches import enclosed, raw_record
from support.raw_requests import compact, header, metadata, text, uvarint
from support.waiting import eventually

Attack = Callable[..., AbstractContextManager[BrokerProcess]]
Entity = tuple[str, str | None]

NEAR_ZERO = 1e-320
QUOTAS, QUOTAS_AT_ONCE = 12_000, 600
NAME_BYTES = 200
CLIENTS = 10
TIMEOUT_S = 60.0
ANSWER_HEAD_BYTES = 9  # correlation id, tags, throttle time


def alter_quotas(key: str, value: float | None, entities: Sequence[Entity]) -> bytes:
    """Version 1. In the answer there is a line for each, which begins with its code."""
    change = b"\2" + compact(key.encode()) + struct.pack(">db", value or 0.0, value is None) + b"\0"
    lines = [
        b"\2" + compact(kind.encode()) + (b"\0" if name is None else compact(name.encode())) + b"\0" + change + b"\0"
        for kind, name in entities
    ]
    return framed(header(49, 1) + b"\0" + uvarint(len(lines) + 1) + b"".join(lines) + b"\0\0")


def describe_quotas() -> bytes:
    """All of them."""
    return framed(header(48, 1) + b"\0\1\0\0")


def unregister(broker_id: int) -> bytes:
    return framed(header(64, 0) + b"\0" + struct.pack(">i", broker_id) + b"\0")


def ask(broker: BrokerProcess, request: bytes) -> bytes:
    """On a connection of its own."""
    with Connection(broker.port, read_timeout_s=TIMEOUT_S) as connection:
        connection.send(request)
        return connection.read_frame()


def set_quota(broker: BrokerProcess, key: str, value: float | None, *entities: Entity) -> Code:
    answer = ask(broker, alter_quotas(key, value, entities))
    return Code(struct.unpack_from(">h", answer, ANSWER_HEAD_BYTES + len(uvarint(len(entities) + 1)))[0])


def test_a_limit_of_connections_near_zero(attack: Attack) -> None:
    """Every new connection waited for ever, after a restart too, and each left a file open."""
    with attack() as broker:
        assert set_quota(broker, "connection_creation_rate", NEAR_ZERO, ("ip", None)) is Code.invalid_request
        assert ask(broker, metadata([]))


def test_a_limit_of_time_near_zero(attack: Attack, name: str) -> None:
    """No answer could be made, and the failure could not be said either."""
    key, client = "request_percentage", ("client-id", name)
    with attack() as broker:
        assert set_quota(broker, key, NEAR_ZERO, client) is Code.none
        mine = struct.pack(">hhi", 3, 4, 1) + text(name) + metadata([])[14:]
        with Connection(broker.port, read_timeout_s=TIMEOUT_S) as connection:
            for _ in range(3):
                connection.send(framed(mine))
                assert connection.read_frame()
        assert set_quota(broker, key, None, client) is Code.none


@contextmanager
def many_quotas(broker: BrokerProcess) -> Iterator[None]:
    key, names = "producer_byte_rate", [f"{number:0{NAME_BYTES}}" for number in range(QUOTAS)]
    slices = [names[begin : begin + QUOTAS_AT_ONCE] for begin in range(0, QUOTAS, QUOTAS_AT_ONCE)]
    for each in slices:
        assert set_quota(broker, key, 1e9, *(("client-id", one) for one in each)) is Code.none
    try:
        yield
    finally:
        for each in slices:
            assert set_quota(broker, key, None, *(("client-id", one) for one in each)) is Code.none


def test_all_quotas_at_once(attack: Attack, broker: BrokerProcess) -> None:
    """36,000 of them held the loop for 220 ms, in each of the requests."""
    with many_quotas(broker), attack(), ExitStack() as stack, ThreadPoolExecutor(CLIENTS) as pool:
        connections = [stack.enter_context(Connection(broker.port, read_timeout_s=TIMEOUT_S)) for _ in range(CLIENTS)]
        for connection in connections:
            connection.send(describe_quotas())
        assert all(len(answer) > QUOTAS * NAME_BYTES for answer in pool.map(Connection.read_frame, connections))


def test_a_broker_that_is_unregistered_comes_back(brokers: dict[int, BrokerProcess], name: str) -> None:
    """It is alive: a broker alone served nothing from then on, and said nothing."""
    (broker_id, broker), *_ = brokers.items()
    make_topic(broker.bootstrap, name, partitions=1)
    assert ask(broker, unregister(broker_id))[ANSWER_HEAD_BYTES:][:2] == b"\0\0"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    eventually(lambda: set(admin.list_topics(timeout=10).brokers), lambda listed: broker_id in listed)
    eventually(lambda: append(brokers, name), lambda code: code is Code.none)
    assert "registers again" in broker.log_path.read_text()


def append(brokers: dict[int, BrokerProcess], topic: str) -> Code:
    """One record, at the leader of the only partition."""
    bootstrap = ",".join(each.bootstrap for each in brokers.values())
    leader = (
        AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=10).topics[topic].partitions[0].leader
    )
    if leader not in brokers:
        return Code.leader_not_available
    part = PartitionProduceData(index=0, records=enclosed(raw_record(0, None), count=1))
    data = TopicProduceData(name=topic, partition_data=(part,))  # type: ignore[arg-type]
    request = ProduceRequest(acks=-1, timeout=timedelta(seconds=30), topic_data=(data,))  # type: ignore[arg-type]
    with Connection(brokers[leader].port, read_timeout_s=TIMEOUT_S) as connection:
        (outcome,) = connection.ask(request, ProduceResponse).responses[0].partition_responses
    return Code(outcome.error_code)


@pytest.fixture(autouse=True)
def every_quota_is_gone(broker: BrokerProcess) -> Iterator[None]:
    yield
    assert set_quota(broker, "connection_creation_rate", None, ("ip", None)) is Code.none
