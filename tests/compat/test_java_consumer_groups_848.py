"""KIP-848 groups with Kafka's own Java consumers and tools, unmodified."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.consumer_fleet import ConsumerFleet
from support.java import java_command, java_tool
from support.librdkafka import Sent, make_topic, send
from support.process import BrokerProcess
from support.waiting import eventually

BROKER_SETTINGS = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
TOOLS = "org.apache.kafka.tools"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
SETTLE_S = 90.0


class Verifiable:
    """VerifiableConsumer in a process of its own; it tells what happens as lines of JSON."""

    def __init__(self, folder: Path, number: int, bootstrap: str, topic: str, *more: str) -> None:
        self._out = folder / f"verifiable-{number}.log"
        words = ("--bootstrap-server", bootstrap, "--topic", topic, "--group-id", topic, *more)
        command = java_command(f"{TOOLS}.VerifiableConsumer", *words)
        with open(self._out, "wb") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)

    def events(self) -> list[dict[str, object]]:
        lines = self._out.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def held(self) -> set[int]:
        """Partitions, by what was assigned and revoked so far."""
        found: set[int] = set()
        for event in self.events():
            if event["name"] in ("partitions_assigned", "partitions_revoked", "partitions_lost"):
                named = {partition["partition"] for partition in event["partitions"]}  # type: ignore[attr-defined]
                found = found | named if event["name"] == "partitions_assigned" else found - named
        return found

    def consumed(self) -> int:
        return sum(int(str(event["count"])) for event in self.events() if event["name"] == "records_consumed")

    def stop(self) -> None:
        """It leaves the group."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def consumers(tmp_path: Path) -> Iterator["Consumers"]:
    made = Consumers(tmp_path)
    yield made
    made.kill()


class Consumers:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: list[Verifiable] = []
        self.running: list[Verifiable] = []

    def start(self, bootstrap: str, topic: str, *more: str) -> Verifiable:
        made = Verifiable(self._folder, len(self._all), bootstrap, topic, *more)
        self._all.append(made)
        self.running.append(made)
        return made

    def settle(self, *sizes: int) -> None:
        eventually(
            lambda: [len(one.held()) for one in self.running],
            lambda held: sorted(held) == sorted(sizes),
            timeout_s=SETTLE_S,
        )
        everything = [index for one in self.running for index in one.held()]
        assert sorted(everything) == list(range(sum(sizes)))

    def kill(self) -> None:
        for one in self._all:
            one.kill()


def described(bootstrap: str, group: str, *what: str) -> list[list[str]]:
    lines = java_tool(GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", group, *what).lines
    return [line.split() for line in lines]


def test_the_console_consumer(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=3)
    send(bootstrap, name, [Sent(str(number).encode(), partition=number % 3) for number in range(30)])
    words = ("--bootstrap-server", bootstrap, "--topic", name, "--group", name, "--from-beginning")
    protocol = ("--consumer-property", "group.protocol=consumer")
    console = f"{TOOLS}.consumer.ConsoleConsumer"
    shown = java_tool(console, *words, *protocol, "--max-messages", "30", "--timeout-ms", "30000")
    assert sorted(map(int, shown.lines)) == list(range(30))
    rows = [line for line in described(bootstrap, name) if line[0] == name]
    assert sorted((row[2], row[3], row[4], row[5]) for row in rows) == [(str(p), "10", "10", "0") for p in range(3)]
    listed = java_tool(GROUPS, "--bootstrap-server", bootstrap, "--list", "--type", "consumer").lines
    assert [name, "Consumer"] in [line.split() for line in listed]
    listed = java_tool(GROUPS, "--bootstrap-server", bootstrap, "--list", "--state", "empty").lines
    assert [name, "Empty"] in [line.split() for line in listed]
    java_tool(GROUPS, "--bootstrap-server", bootstrap, "--delete", "--group", name)
    gone = java_tool(GROUPS, "--bootstrap-server", bootstrap, "--describe", "--group", name, code=None)
    assert "not found" in gone.text or "does not exist" in gone.text


def test_members_come_leave_and_die(broker: BrokerProcess, name: str, consumers: Consumers) -> None:
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name, partitions=6)
    protocol = ("--group-protocol", "consumer")
    for _ in range(2):
        consumers.start(bootstrap, name, *protocol)
    consumers.settle(3, 3)
    send(bootstrap, name, [Sent(b"x", partition=number % 6) for number in range(600)])
    eventually(lambda: sum(one.consumed() for one in consumers.running), lambda count: count == 600, timeout_s=30)
    rows = [line for line in described(bootstrap, name, "--members", "--verbose") if line[0] == name]
    assert sorted(row[4] for row in rows) == ["3", "3"]
    assert {row[5] for row in rows} == {row[7] for row in rows}, "everybody is in the target's epoch"
    (state,) = [line for line in described(bootstrap, name, "--state") if line[0] == name]
    assert state[-3:] == ["uniform", "Stable", "2"]
    third = consumers.start(bootstrap, name, *protocol)
    consumers.settle(2, 2, 2)
    consumers.running.remove(third)
    third.kill()
    killed_at = time.monotonic()
    consumers.settle(3, 3)
    assert time.monotonic() - killed_at > 2, "not before its session is over"
    consumers.running.pop().stop()
    consumers.settle(6)


def test_kafka_reads_the_records_of_a_group(broker: BrokerProcess, name: str) -> None:
    """All kinds of records, and Kafka's DumpLogSegments understands every one of them."""
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name, partitions=4)
    with ConsumerFleet(bootstrap, name) as group:
        group.join(f"^{name}$")
        group.join(name, protocol="classic")
        group.settle(2, 2)
    log = broker.data_dir / "__consumer_offsets-0" / f"{0:020}.log"
    dumped = java_tool("kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(log)).text
    for kind in (3, 5, 6, 7, 8, 16):
        assert re.search(rf'"type":"{kind}","data":{{"groupId":"{name}"[^|]* payload: {{"version":"0"', dumped), kind
    assert '"classicMemberMetadata":{"sessionTimeoutMs":6000' in dumped
    assert not re.search("exception|isvalid: false", dumped, re.IGNORECASE)


def test_a_group_has_settings_of_its_own(bootstrap: str, name: str) -> None:
    group = ("--bootstrap-server", bootstrap, "--entity-type", "groups", "--entity-name", name)
    tool = "kafka.admin.ConfigCommand"
    java_tool(tool, *group, "--alter", "--add-config", "consumer.session.timeout.ms=7000")
    shown = java_tool(tool, *group, "--describe").text
    assert "consumer.session.timeout.ms=7000" in shown
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=7000" in shown
    refused = java_tool(tool, *group, "--alter", "--add-config", "consumer.session.timeout.ms=1", code=1)
    assert (
        "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms"
        in refused.text
    )
    java_tool(tool, *group, "--alter", "--delete-config", "consumer.session.timeout.ms")
    assert "7000" not in java_tool(tool, *group, "--describe").text
