"""Fifty members over two hundred partitions settle, whatever the client; librdkafka has tests of its own."""

from pathlib import Path

import pytest
from support.librdkafka import make_topic
from support.member_processes import MemberProcesses

BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
}
# In as few processes as their language can keep busy.
PROCESSES = {"java-classic": 1, "java-consumer": 1, "aiokafka": 2, "kafka-python": 5}
MEMBERS = 50


@pytest.mark.parametrize("kind", PROCESSES)
def test_fifty_members_over_two_hundred_partitions_settle(bootstrap: str, name: str, tmp_path: Path, kind: str) -> None:
    make_topic(bootstrap, name, partitions=4 * MEMBERS)
    members = MemberProcesses(tmp_path, kind, bootstrap, name)
    try:
        for _ in range(PROCESSES[kind]):
            members.start(session_ms=45_000, count=MEMBERS // PROCESSES[kind])
        members.settle(*[4] * MEMBERS)
    finally:
        members.kill()
