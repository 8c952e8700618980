"""`ottla groups` beside real members."""

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from support.group_member import Member
from support.librdkafka import Sent, make_topic, send

BROKER_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
QUICK = {"heartbeat_interval_ms": 300, "session_timeout_ms": 10_000}


def ottla(*words: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "ottla"
    return subprocess.run([program, "groups", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_list_and_describe(bootstrap: str, name: str, protocol: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    send(bootstrap, name, [Sent(b"%d" % i, partition=p) for p in (0, 1) for i in range(10)])
    settings = QUICK if protocol == "classic" else {"group_protocol": "consumer"}
    member = Member(bootstrap, name, [name], client_id="somebody", **settings)
    member.until_read(20)
    member.commit([TopicPartition(name, 0, 4)])
    shown = ottla("list", "--bootstrap", bootstrap)
    row = next(line.split() for line in shown.stdout.splitlines() if line.startswith(name))
    assert row == [name, protocol, "Stable", "consumer", "1"]
    shown = ottla("describe", name, "--bootstrap", bootstrap)
    title, _, *rows = shown.stdout.splitlines()
    assert title.startswith(f"{name}: Stable, {protocol}, ") and "1 member, coordinator 1, lag 6" in title
    assert [line.split() for line in rows] == [
        [name, "0", "4", "10", "6", "somebody", "at", "127.0.0.1"],
        [name, "1", "-", "10", "-", "somebody", "at", "127.0.0.1"],
    ]
    member.close()


def test_what_is_not_there_is_said(bootstrap: str) -> None:
    shown = ottla("describe", "no-such-group", "--bootstrap", bootstrap)
    assert shown.returncode == 1 and "there is no group no-such-group" in shown.stderr
    shown = ottla("list", "--bootstrap", "127.0.0.1:1")
    assert shown.returncode == 1 and "no broker answers" in shown.stderr
    shown = ottla("list", "--bootstrap", "here")
    assert shown.returncode == 1 and "host:port is expected" in shown.stderr
