"""KIP-848 groups with Kafka's own Java consumers and tools, unmodified."""

import re
from pathlib import Path

from support.consumer_fleet import ConsumerFleet
from support.java import java_tool
from support.librdkafka import Sent, make_topic, send
from support.member_processes import MemberProcesses
from support.process import BrokerProcess

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


def test_members_are_described(bootstrap: str, name: str, tmp_path: Path) -> None:
    make_topic(bootstrap, name, partitions=6)
    members = MemberProcesses(tmp_path, "java-consumer", bootstrap, name)
    try:
        for _ in range(2):
            members.start()
        members.settle(3, 3)
        rows = [line for line in described(bootstrap, name, "--members", "--verbose") if line[0] == name]
        assert sorted(row[4] for row in rows) == ["3", "3"]
        assert {row[5] for row in rows} == {row[7] for row in rows}, "everybody is in the target's epoch"
        (state,) = [line for line in described(bootstrap, name, "--state") if line[0] == name]
        assert state[-3:] == ["uniform", "Stable", "2"]
    finally:
        members.kill()


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
