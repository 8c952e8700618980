"""Quotas as clients feel them: slower, told so, never an error and never a closed connection."""

import datetime
import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Producer, TopicPartition
from kio.schema.alter_client_quotas.v1 import request as alter
from kio.schema.alter_client_quotas.v1.response import AlterClientQuotasResponse
from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse
from kio.schema.create_topics.v7 import request as create
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v9.request import MetadataRequest
from kio.schema.metadata.v9.response import MetadataResponse
from kio.static.primitive import f64, i16, i32, i32Timedelta
from support.frames import Connection
from support.java import java_tool
from support.librdkafka import DEADLINE_S, Sent, make_consumer, make_topic, send
from support.process import BrokerProcess

# Short windows: a client settles within seconds.
BROKER_SETTINGS = {
    "quota.window.num": "3",
    "controller.quota.window.num": "2",
    "offsets.topic.replication.factor": "1",
}
LIMIT = 400_000  # bytes per second: far below what a busy machine can do
SETTLING_S = 4.0
MEASURED_S = 10.0
RECORD = bytes(1000)
CONFIGS = "kafka.admin.ConfigCommand"
TIMEOUT = datetime.timedelta(seconds=30)


@pytest.fixture
def quota(broker: BrokerProcess) -> Iterator["Quotas"]:
    made = Quotas(broker)
    yield made
    made.remove_all()


class Quotas:
    """Sets quotas by the wire; removes what it set when a test ends."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self._set: list[tuple[dict[str, str | None], str]] = []

    def set(self, entity: dict[str, str | None], key: str, value: float) -> None:
        self._alter(entity, alter.OpData(key=key, value=f64(float(value)), remove=False))
        self._set.append((entity, key))

    def remove_all(self) -> None:
        for entity, key in self._set:
            self._alter(entity, alter.OpData(key=key, value=f64(0.0), remove=True))

    def _alter(self, entity: dict[str, str | None], change: alter.OpData) -> None:
        named = tuple(alter.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items())
        entry = alter.EntryData(entity=named, ops=(change,))
        with Connection(self._broker.port, client_id="the-admin") as connection:
            answer = connection.ask(
                alter.AlterClientQuotasRequest(entries=(entry,), validate_only=False), AlterClientQuotasResponse
            )
        assert [line.error_code for line in answer.entries] == [ErrorCode.none]


class Rate:
    """Bytes per second after the time to settle."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self.bytes = 0

    @property
    def done(self) -> bool:
        return time.monotonic() > self._started + SETTLING_S + MEASURED_S

    def add(self, size: int) -> None:
        if time.monotonic() > self._started + SETTLING_S and not self.done:
            self.bytes += size

    @property
    def per_second(self) -> float:
        return self.bytes / MEASURED_S


def test_a_librdkafka_producer_settles_at_its_quota(bootstrap: str, name: str, quota: Quotas) -> None:
    make_topic(bootstrap, name, partitions=2)
    quota.set({"client-id": name}, "producer_byte_rate", LIMIT)
    settings = {"batch.size": 10_000, "linger.ms": 5, "queue.buffering.max.kbytes": 200, "client.id": name}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    rate, errors = Rate(), []

    def report(error: object, message: object) -> None:
        rate.add(len(RECORD))
        if error is not None:
            errors.append(error)

    while not rate.done:
        try:
            producer.produce(name, RECORD, on_delivery=report)
        except BufferError:
            producer.poll(0.01)
        producer.poll(0)
    producer.purge()
    assert not errors
    assert 0.9 * LIMIT < rate.per_second < 1.1 * LIMIT


def test_a_java_producer_settles_at_its_quota(bootstrap: str, name: str, quota: Quotas) -> None:
    make_topic(bootstrap, name, partitions=2)
    quota.set({"client-id": name}, "producer_byte_rate", LIMIT)
    count = int(LIMIT * 27 / 1000)
    properties = (f"bootstrap.servers={bootstrap}", f"client.id={name}", "batch.size=10000", "buffer.memory=200000")
    done = java_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", name, "--num-records", str(count), "--record-size", "1000", "--throughput", "-1"),
        *("--producer-props", *properties),
        timeout_s=180,
    )
    assert "Exception" not in done.text
    rates = [
        float(rate) for rate in re.findall(r"sent, ([\d.]+) records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg", done.out)
    ]
    settled = rates[-4:-1]  # the last line is the summary
    assert len(settled) == 3, done.out
    assert 0.9 * LIMIT < 1000 * sum(settled) / len(settled) < 1.1 * LIMIT


def test_a_consumer_settles_at_its_quota(bootstrap: str, name: str, quota: Quotas) -> None:
    make_topic(bootstrap, name)
    send(
        bootstrap, name, [Sent(RECORD)] * int(LIMIT * 20 / 1000), batch_size=10_000
    )  # a batch comes whole or not at all
    quota.set({"client-id": name}, "consumer_byte_rate", LIMIT)
    consumer = make_consumer(bootstrap, client_id=name, fetch_max_bytes=50_000, message_max_bytes=50_000)
    rate = Rate()
    try:
        consumer.assign([TopicPartition(name, 0, OFFSET_BEGINNING)])
        while not rate.done:
            for message in consumer.consume(100, 0.1):
                assert message.error() is None
                rate.add(len(message.value() or b""))
    finally:
        consumer.close()
    assert 0.85 * LIMIT < rate.per_second < 1.15 * LIMIT


def test_others_are_not_held_up(bootstrap: str, name: str, quota: Quotas) -> None:
    make_topic(bootstrap, name)
    quota.set({"client-id": f"{name}-other"}, "producer_byte_rate", 1000)
    started = time.monotonic()
    assert not send(bootstrap, name, [Sent(RECORD)] * 1000, client_id=name).errors
    assert time.monotonic() - started < DEADLINE_S / 2


def test_quotas_come_into_force_and_go_at_once(broker: BrokerProcess, name: str, quota: Quotas) -> None:
    """A client that may use a thousandth of the time is told to pause; without the quota it is not."""
    with Connection(broker.port, client_id=name) as connection:
        assert max(throttles(connection, 20)) == 0
        quota.set({"client-id": name}, "request_percentage", 0.01)
        assert max(throttles(connection, 20)) > 0
        quota.remove_all()
        assert max(throttles(connection, 5)) == 0


def throttles(connection: Connection, count: int) -> list[float]:
    request = MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    return [connection.ask(request, MetadataResponse).throttle_time.total_seconds() for _ in range(count)]


def test_the_closer_quota_holds(broker: BrokerProcess, name: str, quota: Quotas) -> None:
    quota.set({"client-id": None}, "request_percentage", 0.01)
    quota.set({"client-id": name}, "request_percentage", 100_000)
    with Connection(broker.port, client_id=name) as generous, Connection(broker.port, client_id="anybody") as strict:
        assert max(throttles(generous, 20)) == 0
        assert max(throttles(strict, 20)) > 0


def make_request(topic: str, partitions: int) -> create.CreateTopicsRequest:
    wanted = create.CreatableTopic(
        name=topic, num_partitions=i32(partitions), replication_factor=i16(1), assignments=(), configs=()
    )
    return create.CreateTopicsRequest(topics=(wanted,), timeout=i32Timedelta.parse(TIMEOUT), validate_only=False)


def test_too_many_new_partitions_are_refused(broker: BrokerProcess, name: str, quota: Quotas) -> None:
    quota.set({"client-id": name}, "controller_mutation_rate", 1.0)
    with Connection(broker.port, client_id=name) as connection:
        first = connection.ask(make_request(f"{name}-a", 6), CreateTopicsResponse)
        second = connection.ask(make_request(f"{name}-b", 1), CreateTopicsResponse)
        assert first.topics[0].error_code is ErrorCode.none
        assert second.topics[0].error_code is ErrorCode.throttling_quota_exceeded
        assert second.throttle_time.total_seconds() > 0
        third = connection.ask(make_request(f"{name}-b", 1), CreateTopicsResponse)  # it comes when the pause is over
        assert third.topics[0].error_code is ErrorCode.none


def test_new_connections_wait_for_their_turn(
    broker: BrokerProcess, quota: Quotas, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("--peer") == "kafka":
        pytest.skip("Kafka closes connections over the quota; here they wait")
    quota.set({"ip": "127.0.0.1"}, "connection_creation_rate", 5)
    started = time.monotonic()
    for _ in range(20):
        with Connection(broker.port) as connection:
            assert connection.ask(ApiVersionsRequest(), ApiVersionsResponse).error_code is ErrorCode.none
    # 10 at once are what two windows hold, the others one by one
    assert time.monotonic() - started > 1.5
    quota.remove_all()


def test_kafka_configs(bootstrap: str) -> None:
    server = ("--bootstrap-server", bootstrap)
    clients = ("--entity-type", "clients", "--entity-name", "app")
    each_ip = ("--entity-type", "ips", "--entity-default")
    both = ("--entity-type", "users", "--entity-name", "ann", "--entity-type", "clients", "--entity-default")
    java_tool(CONFIGS, *server, "--alter", *clients, "--add-config", "producer_byte_rate=1000,request_percentage=50")
    java_tool(CONFIGS, *server, "--alter", *both, "--add-config", "consumer_byte_rate=2000")
    java_tool(CONFIGS, *server, "--alter", *each_ip, "--add-config", "connection_creation_rate=900")
    (line,) = java_tool(CONFIGS, *server, "--describe", *clients).lines
    assert line.startswith("Quota configs for client-id 'app' are ")
    assert "producer_byte_rate=1000.0" in line and "request_percentage=50.0" in line
    assert java_tool(CONFIGS, *server, "--describe", *both).lines == [
        "Quota configs for user-principal 'ann', the default client-id are consumer_byte_rate=2000.0"
    ]
    assert java_tool(CONFIGS, *server, "--describe", "--entity-type", "ips").lines == [
        "Quota configs for the default ip are connection_creation_rate=900.0"
    ]
    java_tool(CONFIGS, *server, "--alter", *clients, "--delete-config", "producer_byte_rate,request_percentage")
    java_tool(CONFIGS, *server, "--alter", *each_ip, "--delete-config", "connection_creation_rate")
    assert java_tool(CONFIGS, *server, "--describe", *clients).lines == []
    refused = java_tool(CONFIGS, *server, "--alter", *clients, "--add-config", "producer_byte_rate=-1", code=1)
    assert "Quota producer_byte_rate must be greater than 0" in refused.text
