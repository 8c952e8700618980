"""Share groups over three brokers: brokers die in the middle of acknowledgements, and nothing accepted comes again."""

from collections import Counter
from pathlib import Path

from ottla.coordination.core.partitioning import partition_of
from support.fleet import FleetOf
from support.librdkafka import make_topic
from support.sharing import QUICK_SHARING, Sharers, give_settings, turn_on
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

OFFSETS_PARTITIONS = 3
FLEET_SETTINGS = {
    **QUICK_SHARING,
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
RECORDS_PER_SECOND = 100
SOME = 30
PATIENCE_S = 60.0


def coordinator_of(fleet: FleetOf, group: str) -> int:
    return fleet.leader_of("__consumer_offsets", partition_of(group, OFFSETS_PARTITIONS))


def test_what_is_accepted_stays_accepted_when_brokers_die(fleet: FleetOf, name: str, tmp_path: Path) -> None:
    """Each round has a process of its own, so that nothing waits in a client that was delivered before."""
    make_topic(fleet.bootstrap, name, replicas=3, min_insync_replicas="2")
    turn_on(fleet.bootstrap)
    give_settings(fleet.bootstrap, name, auto_offset_reset="earliest", record_lock_duration_ms="1000")
    producer = SteadyLibrdkafka(fleet.bootstrap, name, partitions=1, rate=RECORDS_PER_SECOND, name="accept")
    got, accepted = set[str](), set[str]()

    def sharers(records_max: int = 10) -> Sharers:
        return Sharers(tmp_path, fleet.bootstrap, group=name, topic=name, members=2, records_max=records_max)

    def accept_some(members: Sharers) -> None:
        enough = len(members.acknowledged()) + SOME
        eventually(lambda: len(members.acknowledged()), lambda seen: seen >= enough, timeout_s=PATIENCE_S)

    for victim_of in (fleet.leader_of, lambda topic: coordinator_of(fleet, topic)):
        with sharers() as members:
            accept_some(members)
            victim = victim_of(name)
            fleet.members[victim].kill()
            accept_some(members)
            members.kill()
            check(members, accepted)
            got |= set(members.deliveries())
            accepted |= set(members.acknowledged())
        fleet.members[victim].start()
        fleet.wait_in_sync()
    sent = {send.value.decode() for send in producer.finish()}
    with sharers(records_max=500) as members:
        missing = sent - accepted - got  # whoever died may have accepted what it had got
        eventually(lambda: len(missing - set(members.acknowledged())), lambda left: not left, timeout_s=PATIENCE_S)
        check(members, accepted)


def check(members: Sharers, accepted: set[str]) -> None:
    again = accepted & set(members.deliveries())
    assert not again, f"accepted before, and delivered again: {sorted(again)}"
    twice = [value for value, count in Counter(members.acknowledged()).items() if count > 1]
    assert not twice, f"accepted twice: {sorted(twice)}"
