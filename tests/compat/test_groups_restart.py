"""What groups leave in the log: offsets after a restart, a crash, a record that nobody can read; their expiry."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kio.schema.offset_commit.v2.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_commit.v2.response import OffsetCommitResponse
from support.frames import Connection
from support.group_member import Member
from support.librdkafka import DEADLINE_S, Sent, make_topic, send
from support.process import BrokerProcess
from support.waiting import eventually

OFFSETS = "__consumer_offsets"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
# Longer than any restart: the client must not lose patience on its own.
PATIENT = {"heartbeat_interval_ms": 300, "session_timeout_ms": 180_000}


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """Again and again while the coordinator is being made: Apache Kafka takes a moment for that."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})

    def problem() -> KafkaError | None:
        try:
            consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata="m")], asynchronous=False)
        except KafkaException as refused:
            assert refused.args[0].retriable() or refused.args[0].code() == KafkaError.NOT_COORDINATOR
            return refused.args[0]
        return None

    eventually(problem, lambda error: error is None)
    consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], timeout=DEADLINE_S)[0].offset)
    finally:
        consumer.close()


@pytest.fixture
def own_broker(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    started = make_broker(**SETTINGS)
    started.start()
    return started


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_offsets_and_members_survive(own_broker: BrokerProcess, name: str, end: str) -> None:
    make_topic(own_broker.bootstrap, name)
    for number in range(20):
        commit(own_broker.bootstrap, f"{name}-{number}", name, number)
    member = Member(own_broker.bootstrap, name, [name], group_instance_id="i", **PATIENT)
    member.until_owns(1)
    getattr(own_broker, end)()
    own_broker.start()
    assert [committed(own_broker.bootstrap, f"{name}-{n}", name) for n in range(20)] == list(range(20))
    send(own_broker.bootstrap, name, [Sent(b"after")])
    member.until_read(1)
    assert len(member.assigned) == 1, "the group went on in the same generation"
    member.close()


def write_as_admin(bootstrap: str, key: bytes | None, value: bytes | None) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "__admin_client"})
    failed: list[KafkaError] = []
    producer.produce(
        OFFSETS, key=key, value=value, partition=0, on_delivery=lambda error, _: error and failed.append(error)
    )
    assert producer.flush(DEADLINE_S) == 0 and not failed, failed


def test_a_record_that_nobody_can_read_is_left_out(own_broker: BrokerProcess, name: str) -> None:
    make_topic(own_broker.bootstrap, name)
    commit(own_broker.bootstrap, f"{name}-before", name, 1)
    group = b"g"
    key = b"\0\1" + len(group).to_bytes(2, "big") + group + len(name).to_bytes(2, "big") + name.encode() + bytes(4)
    write_as_admin(own_broker.bootstrap, key, b"\0\3short")
    write_as_admin(own_broker.bootstrap, b"\0\2\xff", b"x")
    write_as_admin(own_broker.bootstrap, b"\x03\xe8from the future", b"x")
    commit(own_broker.bootstrap, f"{name}-after", name, 2)
    own_broker.kill()
    own_broker.start()
    assert committed(own_broker.bootstrap, f"{name}-before", name) == 1
    assert committed(own_broker.bootstrap, f"{name}-after", name) == 2
    if own_broker.name == "ottla":
        assert own_broker.log_path.read_text().count("cannot be decoded and is skipped") == 2


def test_clients_cannot_write_to_the_offsets_topic(own_broker: BrokerProcess, name: str) -> None:
    make_topic(own_broker.bootstrap, name)
    commit(own_broker.bootstrap, name, name, 1)
    producer = Producer({"bootstrap.servers": own_broker.bootstrap})
    failed: list[KafkaError] = []
    producer.produce(OFFSETS, key=b"k", value=b"v", on_delivery=lambda error, _: failed.append(error))
    producer.flush(DEADLINE_S)
    assert [error.code() for error in failed] == [KafkaError.TOPIC_EXCEPTION]


def test_deleted_groups_stay_deleted(own_broker: BrokerProcess, name: str) -> None:
    make_topic(own_broker.bootstrap, name)
    commit(own_broker.bootstrap, name, name, 1)
    admin = AdminClient({"bootstrap.servers": own_broker.bootstrap})
    admin.delete_consumer_groups([name], request_timeout=DEADLINE_S)[name].result()
    own_broker.kill()
    own_broker.start()
    assert committed(own_broker.bootstrap, name, name) < 0


def test_offsets_expire_and_their_group_with_them(make_broker: Callable[..., BrokerProcess], name: str) -> None:
    broker = make_broker(**SETTINGS, **{"offsets.retention.check.interval.ms": "300"})
    broker.start()
    make_topic(broker.bootstrap, name)
    commit(broker.bootstrap, "makes the offsets topic", name, 1)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    short = OffsetCommitRequest(  # an old client says how long its offsets are kept
        group_id=name,
        generation_id_or_member_epoch=-1,
        member_id="",
        retention_time=timedelta(seconds=2),
        topics=(OffsetCommitRequestTopic(name=name, partitions=(partition,)),),
    )
    with Connection(broker.port) as connection:
        answer = connection.ask(short, OffsetCommitResponse)
    assert int(answer.topics[0].partitions[0].error_code) == 0
    eventually(lambda: committed(broker.bootstrap, name, name), lambda offset: offset < 0)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def listed() -> set[str]:
        found = admin.list_consumer_groups(request_timeout=DEADLINE_S).result()
        return {group.group_id for group in found.valid}

    assert eventually(listed, lambda seen: name not in seen) == {"makes the offsets topic"}
