"""KIP-848 groups over three brokers: they settle, and go on as they were when their coordinator dies."""

import itertools

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from support.consumer_fleet import ConsumerFleet
from support.fleet import FleetOf
from support.librdkafka import DEADLINE_S, Sent, make_topic, send

FLEET_SETTINGS = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
}
PARTITIONS = 6
PER_ROUND = 60
LOOK_S = 3.0


def coordinator_of(fleet: FleetOf, group: str, *, timeout_s: float = DEADLINE_S) -> int:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    return int(admin.describe_consumer_groups([group], request_timeout=timeout_s)[group].result().coordinator.id)


def has_moved(fleet: FleetOf, group: str, victim: int) -> bool:
    """Asked in the moment of its death, this client is told of the victim and then waits for it till its time is up."""
    try:
        return coordinator_of(fleet, group, timeout_s=LOOK_S) != victim
    except KafkaException:
        return False


def test_a_group_goes_on_when_its_coordinator_dies(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3, min_insync_replicas="2")
    fleet.wait_in_sync()
    numbers = itertools.count()

    def produce() -> None:
        values = [str(next(numbers)).encode() for _ in range(PER_ROUND)]
        send(fleet.bootstrap, name, [Sent(value, partition=at % PARTITIONS) for at, value in enumerate(values)])

    with ConsumerFleet(fleet.bootstrap, name) as group:
        members = [group.join(name, enable_auto_commit=False) for _ in range(2)]
        group.settle(3, 3, timeout_s=90)
        before = group.held()
        for round_number in range(1, 3):
            produce()
            group.poll_until(lambda count=round_number * PER_ROUND: len(group.messages) == count, timeout_s=90)
            for member in members:
                member.commit(asynchronous=False)
            victim = coordinator_of(fleet, name)
            fleet.members[victim].kill()
            produced = len(group.messages)
            group.poll_until(lambda victim=victim: has_moved(fleet, name, victim), timeout_s=90)
            assert (group.held(), len(group.messages)) == (before, produced), "nobody lost anything or read twice"
            fleet.members[victim].start()
            fleet.wait_in_sync()
        offsets = members[0].committed([TopicPartition(name, p) for p in range(PARTITIONS)], timeout=DEADLINE_S)
        assert [one.offset for one in offsets] == [2 * PER_ROUND // PARTITIONS] * PARTITIONS
        group.join(name)
        group.settle(2, 2, 2, timeout_s=90)


def test_a_hundred_members_settle(fleet: FleetOf, name: str) -> None:
    """Spread over all coordinators: ten groups of ten."""
    make_topic(fleet.bootstrap, name, partitions=20, replicas=3)
    fleet.wait_in_sync()
    groups = [ConsumerFleet(fleet.bootstrap, f"{name}-{number}") for number in range(10)]
    try:
        for group in groups:
            for _ in range(10):
                group.join(name)
        for group in groups:
            group.settle(*[2] * 10, timeout_s=120)
    finally:
        for group in groups:
            group.__exit__()
