"""KIP-848 groups with librdkafka: joins, leaves, static members, expressions, offsets, moves between the protocols."""

import itertools

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from support.consumer_fleet import ConsumerFleet, held_by
from support.librdkafka import DEADLINE_S, Sent, make_topic, send
from support.process import BrokerProcess
from support.waiting import eventually

BROKER_SETTINGS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
}


def described(bootstrap: str, group: str) -> tuple[str, str]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_consumer_groups([group])[group].result(DEADLINE_S)
    return found.type.name, found.state.name


def test_members_come_and_go(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=6)
    with ConsumerFleet(bootstrap, name) as group:
        group.join(name)
        group.settle(6)
        group.join(name)
        group.settle(3, 3)
        third = group.join(name)
        group.settle(2, 2, 2)
        group.leave(third)
        group.settle(3, 3)
        assert described(bootstrap, name) == ("CONSUMER", "STABLE")
    assert described(bootstrap, name) == ("CONSUMER", "EMPTY")


def test_a_newcomer_takes_only_what_it_gets(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=9)
    with ConsumerFleet(bootstrap, name) as group:
        group.join(name)
        group.join(name)
        group.settle(4, 5)
        before = group.held()
        group.join(name)
        group.settle(3, 3, 3)
        assert all(after <= had for after, had in zip(group.held()[:2], before, strict=True))


def test_every_record_is_read_once_while_members_change(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=4)
    values = [str(number).encode() for number in range(400)]
    send(bootstrap, name, [Sent(value, partition=at % 4) for at, value in enumerate(values)])
    with ConsumerFleet(bootstrap, name) as group:
        first = group.join(name, enable_auto_offset_store=True, auto_commit_interval_ms=100)
        group.poll_until(lambda: len(group.messages) >= 50)
        group.join(name, auto_commit_interval_ms=100)
        group.settle(2, 2)
        group.leave(first)
        group.poll_until(lambda: len({message.value() for message in group.messages}) == len(values))
    read = [message.value() for message in group.messages]
    assert sorted(read) == sorted(values), "nothing is read twice when members leave in order"


def test_growth_is_noticed(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    with ConsumerFleet(bootstrap, name) as group:
        group.join(name)
        group.join(name)
        group.settle(1, 1)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_partitions([NewPartitions(name, 6)])[name].result(DEADLINE_S)
        group.settle(3, 3)


def test_an_expression_follows_the_topics(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, f"{name}-a", partitions=2)
    with ConsumerFleet(bootstrap, name) as group:
        member = group.join(f"^{name}-[ab]$")
        group.settle(2)
        make_topic(bootstrap, f"{name}-b", partitions=3)
        make_topic(bootstrap, f"{name}-c", partitions=1)
        group.settle(5)
        assert {topic for topic, _ in held_by(member)} == {f"{name}-a", f"{name}-b"}


def test_a_static_member_comes_back_to_its_partitions(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=6)
    with ConsumerFleet(bootstrap, name) as group:
        first = group.join(name, group_instance_id="one")
        second = group.join(name, group_instance_id="two")
        group.settle(3, 3)
        had, others = held_by(first), held_by(second)
        group.leave(first)
        again = group.join(name, group_instance_id="one")
        group.poll_until(lambda: held_by(again) == had)
        assert held_by(second) == others, "the other member kept what it had all along"


def test_an_instance_in_use_is_not_given_away(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    with ConsumerFleet(bootstrap, name) as group, ConsumerFleet(bootstrap, name) as second:
        group.join(name, group_instance_id="one")
        group.settle(2)
        second.join(name, group_instance_id="one")
        second.poll_until(lambda: bool(second.errors))
        assert second.errors[0].code() == KafkaError._FATAL
        assert "instance ID is still used by another member" in second.errors[0].str()
        group.settle(2)


def test_who_is_not_a_member_commits_nothing(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=1)
    offsets = [TopicPartition(name, 0, 5)]
    with ConsumerFleet(bootstrap, name) as group, ConsumerFleet(bootstrap, name) as outside:
        member = group.join(name)
        group.settle(1)
        stranger = outside.join()
        with pytest.raises(KafkaException):
            stranger.commit(offsets=offsets, asynchronous=False)
        member.commit(offsets=offsets, asynchronous=False)
        assert member.committed([TopicPartition(name, 0)], timeout=DEADLINE_S)[0].offset == 5


def test_the_range_assignor(bootstrap: str, name: str) -> None:
    for topic in (f"{name}-x", f"{name}-y"):
        make_topic(bootstrap, topic, partitions=4)
    with ConsumerFleet(bootstrap, name) as group:
        for _ in range(2):
            group.join(f"{name}-x", f"{name}-y", group_remote_assignor="range")
        group.settle(4, 4)
        for held in group.held():
            assert {index for topic, index in held if topic.endswith("x")} in ({0, 1}, {2, 3})
            assert {index for topic, index in held if topic.endswith("x")} == {
                index for topic, index in held if topic.endswith("y")
            }


@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_group_moves_up_and_down_while_in_use(bootstrap: str, name: str, strategy: str) -> None:
    make_topic(bootstrap, name, partitions=6)
    old = {"protocol": "classic", "partition_assignment_strategy": strategy}
    with ConsumerFleet(bootstrap, name) as group:
        first = group.join(name, **old)
        group.settle(6)
        assert described(bootstrap, name)[0] == "CLASSIC"
        new = group.join(name)
        group.settle(3, 3)
        assert described(bootstrap, name)[0] == "CONSUMER"
        group.join(name, **old)
        group.settle(2, 2, 2)
        group.leave(new)
        group.settle(3, 3)
        group.poll_until(lambda: described(bootstrap, name) == ("CLASSIC", "STABLE"))
        if strategy == "cooperative-sticky":
            return  # librdkafka's leader now sends data of its own along, which forbids the way up in Kafka and here
        group.join(name)
        group.settle(2, 2, 2)
        group.leave(first)
        group.settle(3, 3)
        assert described(bootstrap, name)[0] == "CONSUMER"


def test_offsets_survive_the_move(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=1)
    with ConsumerFleet(bootstrap, name) as group:
        old = group.join(name, protocol="classic")
        group.settle(1)
        old.commit(offsets=[TopicPartition(name, 0, 7)], asynchronous=False)
    with ConsumerFleet(bootstrap, name) as group:
        new = group.join(name)
        group.settle(1)
        assert new.committed([TopicPartition(name, 0)], timeout=DEADLINE_S)[0].offset == 7


def test_fifty_members_over_two_hundred_partitions(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=200)
    with ConsumerFleet(bootstrap, name) as group:
        for _ in range(50):
            group.join(name)
        group.settle(*[4] * 50, timeout_s=90)


def test_the_group_goes_on_after_a_restart(broker: BrokerProcess, name: str) -> None:
    """The last test of the module: clients of others would notice."""
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name, partitions=4)
    numbers = itertools.count()

    def produce(count: int) -> None:
        send(bootstrap, name, [Sent(str(next(numbers)).encode(), partition=at % 4) for at in range(count)])

    with ConsumerFleet(bootstrap, name) as group:
        members = [group.join(name) for _ in range(2)]
        group.settle(2, 2)
        produce(40)
        group.poll_until(lambda: len(group.messages) == 40)
        for member in members:
            member.commit(asynchronous=False)
        before = group.held()
        broker.kill()
        broker.start()
        produce(40)
        group.poll_until(lambda: len({message.value() for message in group.messages}) == 80, timeout_s=60)
        assert group.held() == before
    eventually(lambda: described(bootstrap, name), lambda seen: seen == ("CONSUMER", "EMPTY"))
