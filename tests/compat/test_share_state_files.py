"""Kafka's own tools read the states of share-partitions: from the files, and as records of the topic."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ottla.ids import uuid_text
from ottla.share.coordinator import SHARE_STATE_TOPIC
from ottla.share.core.messages import Delivery, ShareKey, StateBatch
from support.dump import files_of
from support.java import java_tool
from support.nodes import InnerNode, inner_nodes

A, K, X = Delivery.AVAILABLE, Delivery.ACKNOWLEDGED, Delivery.ARCHIVED
FORMATTER = "org.apache.kafka.tools.consumer.group.share.ShareGroupStateMessageFormatter"
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}


async def write_history(node: InnerNode, key: ShareKey) -> None:
    """A snapshot, the first leader, an update, a second snapshot, the end."""
    persister = node.coordinators.persister
    await persister.initialize(key, state_epoch=1, start=100)
    await persister.read(key, leader_epoch=3)
    first, second = [StateBatch(101, 110, K, 1), StateBatch(111, 111, X, 5)], [StateBatch(100, 100, A, 2)]
    await persister.write(key, state_epoch=1, leader_epoch=3, start=-1, batches=first)
    await persister.write(key, state_epoch=1, leader_epoch=3, start=-1, batches=second)
    await persister.delete(key)


def batch(first: int, last: int, delivery: int, count: int) -> dict[str, int]:
    return {"firstOffset": first, "lastOffset": last, "deliveryState": delivery, "deliveryCount": count}


def check_history(values: Sequence[Any]) -> None:
    begin, leader, update, snapshot, end = values
    assert end in (None, "<DELETE>")
    times = {"createTimestamp": begin["createTimestamp"], "writeTimestamp": begin["writeTimestamp"]}
    assert begin == {
        "snapshotEpoch": 0,
        "stateEpoch": 1,
        "leaderEpoch": 0,
        "startOffset": 100,
        "stateBatches": [],
        **times,
    }
    assert leader == {"snapshotEpoch": 0, "leaderEpoch": 3, "startOffset": -1, "stateBatches": []}
    news = [batch(101, 110, K, 1), batch(111, 111, X, 5)]
    assert update == {"snapshotEpoch": 0, "leaderEpoch": 3, "startOffset": -1, "stateBatches": news}
    assert snapshot.pop("writeTimestamp") >= times.pop("writeTimestamp")
    assert snapshot == {
        "snapshotEpoch": 1,
        "stateEpoch": 1,
        "leaderEpoch": 3,
        "startOffset": 100,
        "stateBatches": [batch(100, 100, A, 2), *news],
        **times,
    }


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> tuple[ShareKey, str, str]:
    """The key, what the console consumer shows of the living broker, and what DumpLogSegments says of its files."""

    async def run() -> tuple[ShareKey, str, str]:
        async with inner_nodes(tmp_path_factory.mktemp("node"), 1, **SETTINGS) as (node,):
            key = ShareKey("readers", await node.make_topic("t", partitions=3, replication_factor=1), 2)
            await write_history(node, key)
            shown = await asyncio.to_thread(consume, node.bootstrap)
            await node.stop()
            files = files_of(node.data_dir, SHARE_STATE_TOPIC, ".log")
            return key, shown, await asyncio.to_thread(dump, files)

    return asyncio.run(run())


def consume(bootstrap: str) -> str:
    return java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", SHARE_STATE_TOPIC, "--from-beginning"),
        *("--formatter", FORMATTER, "--max-messages", "5", "--timeout-ms", "20000"),
    ).out


def dump(files: list[Path]) -> str:
    return java_tool(
        "kafka.tools.DumpLogSegments",
        *("--share-group-state-decoder", "--deep-iteration", "--files", ",".join(map(str, files))),
    ).text


def test_console_consumer(seen: tuple[ShareKey, str, str]) -> None:
    key, shown, _ = seen
    records = json.loads("[" + shown.strip().replace("}{", "},{") + "]")  # the formatter writes no ends of lines
    expected = {"groupId": key.group_id, "topicId": uuid_text(key.topic_id), "partition": key.partition}
    assert [record["key"] for record in records] == [{"type": kind, "data": expected} for kind in (0, 1, 1, 0, 0)], (
        shown
    )
    check_history([record["value"] and record["value"]["data"] for record in records])


def test_dump_log_segments(seen: tuple[ShareKey, str, str]) -> None:
    key, _, text = seen
    lines = re.findall(r" key: (\{.*?\}) payload: (.*)$", text, re.MULTILINE)
    keys, values = [json.loads(one) for one, _ in lines], [one for _, one in lines]
    expected = {"groupId": key.group_id, "topicId": uuid_text(key.topic_id), "partition": key.partition}
    assert [one["data"] for one in keys] == [expected] * 5, text
    assert [int(one["type"]) for one in keys] == [0, 1, 1, 0, 0]
    check_history([json.loads(one)["data"] if one.startswith("{") else one for one in values])
    assert text.count("isvalid: true") == 5
