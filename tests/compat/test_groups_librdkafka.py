"""Classic groups with librdkafka: joins, leaves, crashes, static members, both ways of rebalancing, offsets."""

import threading

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from support.group_member import Member, MemberProcess, settled
from support.librdkafka import DEADLINE_S, Sent, make_topic, send
from support.waiting import eventually

BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
QUICK = {"heartbeat_interval_ms": 300, "session_timeout_ms": 6000}


def fill(bootstrap: str, topic: str, *, partitions: int, each: int) -> None:
    make_topic(bootstrap, topic, partitions=partitions)
    send(bootstrap, topic, [Sent(b"%d" % i, partition=p) for p in range(partitions) for i in range(each)])


def committed(bootstrap: str, group: str, topic: str, partition: int = 0) -> TopicPartition:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        return consumer.committed([TopicPartition(topic, partition)], timeout=DEADLINE_S)[0]
    finally:
        consumer.close()


def test_a_group_goes_on_where_it_stopped(bootstrap: str, name: str) -> None:
    fill(bootstrap, name, partitions=1, each=100)
    first = Member(bootstrap, name, [name], **QUICK)
    first.until_read(100)
    first.commit([TopicPartition(name, 0, 60)])
    first.close()
    second = Member(bootstrap, name, [name], **QUICK)
    assert [m.value() for m in second.until_read(40)] == [b"%d" % i for i in range(60, 100)]
    second.close()


def test_members_share_and_take_over(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=6)
    members = [Member(bootstrap, name, [name], **QUICK) for _ in range(3)]
    settled(members, 6)
    members.pop().close()
    settled(members, 6)
    members.append(Member(bootstrap, name, [name], **QUICK))
    settled(members, 6)
    for member in members:
        member.close()


def test_partitions_of_a_crashed_member_are_taken_over(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=4)
    doomed = MemberProcess(bootstrap, name, [name], **QUICK)
    doomed.until_owns(4)
    survivor = Member(bootstrap, name, [name], **QUICK)
    doomed.until_owns(2)
    survivor.until_owns(2)
    doomed.kill()
    survivor.until_owns(4)
    survivor.close()


def test_a_static_member_restarts_without_rebalance(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=4)
    static = {**QUICK, "session_timeout_ms": 30_000}
    members = [Member(bootstrap, name, [name], group_instance_id=f"i{i}", **static) for i in range(2)]
    settled(members, 4)
    before, rounds = set(members[1].owned), len(members[0].assigned)
    members[1].close()
    members[1] = Member(bootstrap, name, [name], group_instance_id="i1", **static)
    assert members[1].until_owns(2) == before
    assert len(members[0].assigned) == rounds, "the other member was rebalanced"
    for member in members:
        member.close()


def test_a_second_instance_fences_the_first(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=1)
    first = Member(bootstrap, name, [name], group_instance_id="same", **QUICK)
    first.until_owns(1)
    second = Member(bootstrap, name, [name], group_instance_id="same", **QUICK)
    second.until_owns(1)
    fatal = eventually(lambda: [e for e in first.errors if e.code() == KafkaError._FATAL], bool)
    assert "fenced by other consumer with same group.instance.id" in fatal[0].str()
    second.close()
    first.close()


def test_cooperative_members_keep_what_they_need_not_give(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=6)
    cooperative = {**QUICK, "partition_assignment_strategy": "cooperative-sticky"}
    first = Member(bootstrap, name, [name], **cooperative)
    first.until_owns(6)
    before = set(first.owned)
    second = Member(bootstrap, name, [name], **cooperative)
    settled([first, second], 6)
    given = set().union(*first.revoked)
    assert len(given) == 3, f"only half must be given away, not {given}"
    assert set(first.owned) == before - given
    assert set(second.owned) == given
    first.close()
    second.close()


def test_fifty_members_over_two_hundred_partitions_settle(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=200)
    patient = {"heartbeat_interval_ms": 1000, "session_timeout_ms": 45_000}
    members = [Member(bootstrap, name, [name], **patient) for _ in range(50)]
    settled(members, 200, timeout_s=180.0)
    closing = [threading.Thread(target=member.close) for member in members]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join()


# offsets


def test_metadata_and_epoch_come_back(bootstrap: str, name: str) -> None:
    fill(bootstrap, name, partitions=1, each=3)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 2, metadata="näher", leader_epoch=0)], asynchronous=False)
    consumer.close()
    found = committed(bootstrap, name, name)
    assert (found.offset, found.metadata, found.leader_epoch) == (2, "näher", 0)


def test_too_much_metadata_is_refused(bootstrap: str, name: str) -> None:
    fill(bootstrap, name, partitions=1, each=1)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=[TopicPartition(name, 0, 1, metadata="x" * 5000)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    consumer.commit(offsets=[TopicPartition(name, 0, 1, metadata="x" * 4000)], asynchronous=False)
    consumer.close()
    assert committed(bootstrap, name, name).metadata.rstrip("\0") == "x" * 4000


def test_a_commit_to_a_topic_that_is_gone_is_refused(bootstrap: str, name: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=[TopicPartition("no-such-topic", 0, 1)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    consumer.close()


def test_offsets_go_with_their_topic(bootstrap: str, name: str) -> None:
    fill(bootstrap, name, partitions=1, each=3)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.commit(offsets=[TopicPartition(name, 0, 3)], asynchronous=False)
    consumer.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_topics([name])[name].result(DEADLINE_S)
    eventually(lambda: committed(bootstrap, name, name).offset, lambda offset: offset < 0)


# administration


def test_groups_are_listed_described_and_deleted(bootstrap: str, name: str) -> None:
    fill(bootstrap, name, partitions=2, each=5)
    member = Member(bootstrap, name, [name], client_id="somebody", **QUICK)
    member.until_owns(2)
    member.until_read(10)
    member.commit()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}, request_timeout=DEADLINE_S).result()
    assert name in {group.group_id for group in listed.valid}
    described = admin.describe_consumer_groups([name], request_timeout=DEADLINE_S)[name].result()
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    (one,) = described.members
    assert (one.client_id, one.host) == ("somebody", "/127.0.0.1")
    assert {(p.topic, p.partition) for p in one.assignment.topic_partitions} == {(name, 0), (name, 1)}
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([name], request_timeout=DEADLINE_S)[name].result()
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    member.close()
    eventually(lambda: _state(admin, name), lambda state: state == ConsumerGroupState.EMPTY)
    admin.delete_consumer_groups([name], request_timeout=DEADLINE_S)[name].result()
    assert committed(bootstrap, name, name).offset < 0
    listed = admin.list_consumer_groups(request_timeout=DEADLINE_S).result()
    assert name not in {group.group_id for group in listed.valid}


def _state(admin: AdminClient, group: str) -> ConsumerGroupState:
    return admin.describe_consumer_groups([group], request_timeout=DEADLINE_S)[group].result().state


def test_an_administrator_moves_offsets_of_an_empty_group(bootstrap: str, name: str) -> None:
    fill(bootstrap, name, partitions=2, each=5)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = ConsumerGroupTopicPartitions(name, [TopicPartition(name, 0, 4), TopicPartition(name, 1, 1)])
    admin.alter_consumer_group_offsets([wanted], request_timeout=DEADLINE_S)[name].result()
    asked = [ConsumerGroupTopicPartitions(name)]
    found = admin.list_consumer_group_offsets(asked, request_timeout=DEADLINE_S)[name].result()
    assert {(p.partition, p.offset) for p in found.topic_partitions} == {(0, 4), (1, 1)}
    member = Member(bootstrap, name, [name], **QUICK)
    assert len(member.until_read(5)) == 5
    member.close()
