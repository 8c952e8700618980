"""What members of every client do to each other: they come, leave, die, come back, and give up no more than they must.

librdkafka's classic members have tests of their own.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from support.librdkafka import Sent, make_topic, send
from support.member_processes import COOPERATIVE, KINDS, MemberProcesses
from support.steady import SteadyLibrdkafka
from support.waiting import eventually

# Of who shall be missed soon, and of who must start anew within it, on a busy machine too.
SHORT_MS, LONG_MS = 5000, 45_000
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(LONG_MS),
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "300",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
}
PARTITIONS = 6
RECORDS = 600


@pytest.fixture
def members(request: pytest.FixtureRequest, bootstrap: str, name: str, tmp_path: Path) -> Iterator[MemberProcesses]:
    make_topic(bootstrap, name, partitions=PARTITIONS)
    made = MemberProcesses(tmp_path, request.param, bootstrap, name)
    yield made
    made.kill()


def give_short_sessions(bootstrap: str, group: str) -> None:
    """By a setting of the group: members of KIP-848 cannot wish for one."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    wanted = {"consumer.session.timeout.ms": str(SHORT_MS)}
    admin.alter_configs([ConfigResource(ConfigResourceType.GROUP, group, configs=wanted)])
    admin.close()


@pytest.mark.parametrize("members", KINDS, indirect=True)
def test_members_come_leave_and_die(bootstrap: str, name: str, members: MemberProcesses) -> None:
    give_short_sessions(bootstrap, name)
    leaving = members.start(session_ms=SHORT_MS)
    members.start(session_ms=SHORT_MS)
    members.settle(3, 3)
    send(bootstrap, name, [Sent(b"x", partition=number % PARTITIONS) for number in range(RECORDS)])
    eventually(lambda: sum(one.consumed() for one in members.running), lambda count: count >= RECORDS)
    doomed = members.start(session_ms=SHORT_MS)
    members.settle(2, 2, 2)
    members.running.remove(doomed)
    doomed.kill()
    killed_at = time.monotonic()
    members.settle(3, 3)
    assert time.monotonic() - killed_at > 2, "not before its session is over"
    members.running.remove(leaving)
    leaving.stop()
    members.settle(6)


@pytest.mark.parametrize("members", KINDS, indirect=True)
def test_a_static_member_restarts_without_rebalance(members: MemberProcesses) -> None:
    first = members.start(session_ms=LONG_MS, instance_id="one")
    second = members.start(session_ms=LONG_MS, instance_id="two")
    members.settle(3, 3)
    held, moves = second.held(), list(first.moves())
    members.running.remove(second)
    second.stop()
    again = members.start(session_ms=LONG_MS, instance_id="two")
    members.settle(3, 3)
    assert again.held() == held
    assert first.moves() == moves, "the other one was rebalanced"


@pytest.mark.parametrize("members", COOPERATIVE, indirect=True)
def test_a_cooperative_member_goes_on_with_what_it_keeps(bootstrap: str, name: str, members: MemberProcesses) -> None:
    first = members.start(session_ms=LONG_MS, cooperative=True)
    members.settle(6)
    producer = SteadyLibrdkafka(bootstrap, name, partitions=PARTITIONS, rate=200)
    second = members.start(session_ms=LONG_MS, cooperative=True)
    members.settle(3, 3)
    sent = producer.finish()
    assert first.given() == [second.held()], "only what the other one gets, and in one go"
    kept = sum(one.partition in first.held() for one in sent)
    eventually(lambda: first.consumed_from(first.held()), lambda count: count >= kept)
    assert first.consumed_from(first.held()) == kept, "it read on where it was: nothing twice"
