"""Classic groups with Java's consumer, and Kafka's own tools over them."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from ottla.coordination.core.partitioning import partition_of
from support.group_member import Member
from support.java import Finished, java_tool
from support.librdkafka import DEADLINE_S, Sent, make_consumer, make_topic, send

TOOLS = "org.apache.kafka.tools"
OFFSETS_PARTITIONS = 7
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.replication.factor": "1",
}
QUICK = {"heartbeat_interval_ms": 300, "session_timeout_ms": 6000}
STAMP_MS = 1_700_000_000_000


def groups(bootstrap: str, *arguments: str, code: int | None = 0) -> Finished:
    return java_tool(
        f"{TOOLS}.consumer.group.ConsumerGroupCommand", "--bootstrap-server", bootstrap, *arguments, code=code
    )


def rows(shown: Finished) -> list[dict[str, str]]:
    """A table with a header line, as the tool prints it."""
    header, *lines = [line.split() for line in shown.lines]
    return [dict(zip(header, line, strict=False)) for line in lines]


def commit(bootstrap: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, p, o) for p, o in offsets.items()], asynchronous=False)
    consumer.close()


@pytest.fixture
def filled(bootstrap: str, name: str) -> str:
    """A topic with ten records, a second apart, in each of two partitions."""
    make_topic(bootstrap, name, partitions=2)
    send(
        bootstrap,
        name,
        [Sent(b"%d" % i, partition=p, timestamp_ms=STAMP_MS + i * 1000) for p in (0, 1) for i in range(10)],
    )
    return name


def console(bootstrap: str, topic: str, group: str, count: int) -> list[str]:
    return java_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", topic, "--group", group,
        "--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000",
    ).lines  # fmt: skip


def test_the_console_consumer_goes_on_where_it_stopped(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"%d" % i) for i in range(10)])
    assert console(bootstrap, name, name, 4) == ["0", "1", "2", "3"]
    assert console(bootstrap, name, name, 6) == ["4", "5", "6", "7", "8", "9"]


def test_verifiable_consumer(bootstrap: str, filled: str) -> None:
    shown = java_tool(
        f"{TOOLS}.VerifiableConsumer", "--bootstrap-server", bootstrap, "--topic", filled, "--group-id", filled,
        "--max-messages", "20", "--reset-policy", "earliest",
    )  # fmt: skip
    events = [json.loads(line) for line in shown.lines]
    names = [event["name"] for event in events]
    assert names[0] == "startup_complete" and names[-1] == "shutdown_complete"
    assigned = next(event for event in events if event["name"] == "partitions_assigned")
    assert {place["partition"] for place in assigned["partitions"]} == {0, 1}
    assert sum(event["count"] for event in events if event["name"] == "records_consumed") == 20
    commits = [event for event in events if event["name"] == "offsets_committed"]
    assert commits and all(event["success"] for event in commits)
    last = {place["partition"]: place["offset"] for event in commits for place in event["offsets"]}
    assert last == {0: 10, 1: 10}


def records_of(bootstrap: str, topic: str, partition: int) -> int:
    consumer = make_consumer(bootstrap)
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=DEADLINE_S)
    consumer.close()
    return int(end - first)


def formatted(bootstrap: str, formatter: str, group: str) -> list[dict]:  # type: ignore[type-arg]
    """Of the one partition that has the group, and as many records as it has: the tool need not wait for more."""
    topic, partition = "__consumer_offsets", partition_of(group, OFFSETS_PARTITIONS)
    shown = java_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", topic,
        "--partition", str(partition), "--offset", "earliest", "--timeout-ms", "10000",
        "--max-messages", str(records_of(bootstrap, topic, partition)),
        "--formatter", f"{TOOLS}.consumer.{formatter}",
    )  # fmt: skip
    decoder, found, text = json.JSONDecoder(), [], "".join(shown.lines)
    while text:  # one of the two formatters writes no line ends
        record, end = decoder.raw_decode(text)
        found.append(record)
        text = text[end:].lstrip()
    return [record for record in found if record["key"]["data"]["group"] == group]


def test_records_are_in_kafkas_own_formats(bootstrap: str, filled: str) -> None:
    member = Member(bootstrap, filled, [filled], client_id="somebody", group_instance_id="inst", **QUICK)
    member.until_read(20)
    member.commit()
    offsets = formatted(bootstrap, "OffsetsMessageFormatter", filled)
    groups_found = formatted(bootstrap, "GroupMetadataMessageFormatter", filled)
    member.close()
    assert {one["key"]["data"]["partition"] for one in offsets} == {0, 1}
    for one in offsets:
        assert one["key"]["type"] == 1 and one["value"]["version"] == 4
        assert (one["value"]["data"]["offset"], one["value"]["data"]["metadata"]) == (10, "")
        assert abs(one["value"]["data"]["commitTimestamp"] - time.time() * 1000) < 600_000
    assert {one["value"]["version"] for one in groups_found} == {3}
    group = next(one["value"]["data"] for one in groups_found if one["value"]["data"]["members"])
    assert (group["protocolType"], group["generation"], group["protocol"]) == ("consumer", 1, "range")
    (one,) = group["members"]
    assert (one["groupInstanceId"], one["clientId"], one["clientHost"]) == ("inst", "somebody", "/127.0.0.1")
    assert one["memberId"] == group["leader"] and one["sessionTimeout"] == 6000


def test_list_and_describe(bootstrap: str, filled: str) -> None:
    member = Member(bootstrap, filled, [filled], client_id="somebody", **QUICK)
    member.until_read(20)
    member.commit([TopicPartition(filled, 0, 4), TopicPartition(filled, 1, 10)])
    assert filled in groups(bootstrap, "--list").lines
    listed = {row["GROUP"]: row["STATE"] for row in rows(groups(bootstrap, "--list", "--state", "stable"))}
    assert listed[filled] == "Stable"
    described = rows(groups(bootstrap, "--describe", "--group", filled))
    seen = {
        row["PARTITION"]: (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"], row["CLIENT-ID"], row["HOST"])
        for row in described
    }
    assert seen == {"0": ("4", "10", "6", "somebody", "/127.0.0.1"), "1": ("10", "10", "0", "somebody", "/127.0.0.1")}
    (row,) = rows(groups(bootstrap, "--describe", "--group", filled, "--members", "--verbose"))
    assert row["CLIENT-ID"] == "somebody" and row["#PARTITIONS"] == "2"
    state = groups(bootstrap, "--describe", "--group", filled, "--state").text
    assert "range" in state and "Stable" in state
    refused = groups(
        bootstrap, "--reset-offsets", "--group", filled, "--to-earliest", "--topic", filled, "--execute", code=None
    )
    assert "Assignments can only be reset if the group" in refused.text
    member.close()


def reset(bootstrap: str, group: str, *how: str) -> dict[str, str]:
    """Partition → new offset, as the tool shows it."""
    shown = groups(bootstrap, "--reset-offsets", "--group", group, "--execute", *how)
    return {row["PARTITION"]: row["NEW-OFFSET"] for row in rows(shown)}


def test_offsets_are_reset(bootstrap: str, filled: str, tmp_path: Path) -> None:
    commit(bootstrap, filled, filled, {0: 4, 1: 6})
    topic = ("--topic", filled)
    assert reset(bootstrap, filled, *topic, "--shift-by", "2") == {"0": "6", "1": "8"}
    at = datetime.fromtimestamp(STAMP_MS / 1000 + 3, UTC).strftime("%Y-%m-%dT%H:%M:%S.000")
    assert reset(bootstrap, filled, *topic, "--to-datetime", at) == {"0": "3", "1": "3"}
    exported = groups(bootstrap, "--reset-offsets", "--group", filled, *topic, "--to-current", "--dry-run", "--export")
    # long names are quoted
    assert sorted(line.replace('"', "") for line in exported.lines) == [f"{filled},{p},3" for p in (0, 1)]
    assert reset(bootstrap, filled, *topic, "--to-earliest") == {"0": "0", "1": "0"}
    plan = tmp_path / "plan.csv"
    plan.write_text(f"{filled},0,7\n{filled},1,9\n")
    assert reset(bootstrap, filled, "--from-file", str(plan)) == {"0": "7", "1": "9"}
    described = rows(groups(bootstrap, "--describe", "--group", filled))
    assert {row["PARTITION"]: row["LAG"] for row in described} == {"0": "3", "1": "1"}


def test_offsets_and_groups_are_deleted(bootstrap: str, filled: str) -> None:
    commit(bootstrap, filled, filled, {0: 4, 1: 6})
    shown = groups(bootstrap, "--delete-offsets", "--group", filled, "--topic", f"{filled}:1")
    assert "Successful" in shown.text
    assert [row["PARTITION"] for row in rows(groups(bootstrap, "--describe", "--group", filled))] == ["0"]
    assert "was successful" in groups(bootstrap, "--delete", "--group", filled).text
    assert filled not in groups(bootstrap, "--list").lines
    gone = groups(bootstrap, "--describe", "--group", filled, code=None)
    assert "not found" in gone.text
