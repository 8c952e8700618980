"""Groups in a fleet of three: their coordinator dies, and nothing that was committed is lost."""

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from support.fleet import FleetOf
from support.group_member import Member, settled
from support.librdkafka import DEADLINE_S, make_topic
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

FLEET_SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.replication.factor": "3"}
GAP_S_MAX = {"ottla": 5.0, "kafka": 30.0}
PARTITIONS = 3
RECORDS_PER_SECOND = 300


def coordinator_of(fleet: FleetOf, group: str) -> int:
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    described = admin.describe_consumer_groups([group], request_timeout=DEADLINE_S)[group].result()
    return int(described.coordinator.id)


def committed(fleet: FleetOf, group: str, topic: str) -> dict[int, int]:
    """Whoever has nothing committed is at -1."""
    consumer = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": group})
    try:
        asked = [TopicPartition(topic, p) for p in range(PARTITIONS)]
        return {one.partition: max(one.offset, -1) for one in consumer.committed(asked, timeout=DEADLINE_S)}
    finally:
        consumer.close()


def test_members_go_on_when_their_coordinator_dies(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3, min_insync_replicas="2")
    fleet.wait_in_sync()
    producer = SteadyLibrdkafka(fleet.bootstrap, name, partitions=PARTITIONS, rate=RECORDS_PER_SECOND)
    quick = {"heartbeat_interval_ms": 500, "session_timeout_ms": 30_000}
    commits = {"enable_auto_commit": True, "auto_commit_interval_ms": 200}
    members = [Member(fleet.bootstrap, name, [name], **quick, **commits) for _ in range(2)]
    settled(members, PARTITIONS)
    for member in members:
        member.until_read(300)
    before = eventually(lambda: committed(fleet, name, name), lambda seen: min(seen.values()) > 0)
    victim = coordinator_of(fleet, name)
    for member in members:
        member.silence.reset()
    fleet.members[victim].kill()
    reads = [len(member.records) for member in members]
    for member, read in zip(members, reads, strict=True):
        member.until_read(read + 500)
    gap_s = max(member.silence.longest_s for member in members)
    after = eventually(lambda: committed(fleet, name, name), lambda seen: all(seen[p] > before[p] for p in seen))
    print(f"{fleet.peer}: coordinator {victim} died, members stood still for {gap_s:.1f} s; {before} → {after}")
    assert gap_s <= GAP_S_MAX[fleet.peer]
    assert coordinator_of(fleet, name) != victim
    check_every_record_once_per_owner(members)
    for member in members:
        member.close()
    producer.finish()
    fleet.members[victim].start()
    fleet.wait_in_sync()


def check_every_record_once_per_owner(members: list[Member]) -> None:
    """Nobody skips: what one member read of a partition in one go has no holes."""
    for member in members:
        seen: dict[int, int] = {}
        for record in member.records:
            last = seen.get(record.partition())
            assert last is None or record.offset() <= last + 1, f"{record.partition()}: {record.offset()} after {last}"
            seen[record.partition()] = record.offset()


def test_offsets_survive_the_death_of_every_coordinator_in_turn(fleet: FleetOf, name: str) -> None:
    make_topic(fleet.bootstrap, name, partitions=PARTITIONS, replicas=3)
    fleet.wait_in_sync()
    groups = [f"{name}-{i}" for i in range(10)]
    for number, group in enumerate(groups):
        consumer = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": group})
        wanted = [TopicPartition(name, p, 100 * number + p, metadata=f"of {group}") for p in range(PARTITIONS)]
        consumer.commit(offsets=wanted, asynchronous=False)
        consumer.close()
    for victim in fleet.ids:
        fleet.members[victim].kill()
        for number, group in enumerate(groups):
            seen = eventually(lambda group=group: committed(fleet, group, name), lambda seen: min(seen.values()) >= 0)
            assert seen == {p: 100 * number + p for p in range(PARTITIONS)}
        fleet.members[victim].start()
        fleet.wait_in_sync()
