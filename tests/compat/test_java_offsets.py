"""kafka-get-offsets, kafka-delete-records and kafka-log-dirs, unmodified."""

import json
from pathlib import Path

from support.java import Finished, java_tool
from support.librdkafka import Sent, make_topic, send
from support.process import BrokerProcess

STAMP = 1_700_000_000_000


def offsets(bootstrap: str, *arguments: str, code: int = 0) -> Finished:
    return java_tool("org.apache.kafka.tools.GetOffsetShell", "--bootstrap-server", bootstrap, *arguments, code=code)


def delete_records(bootstrap: str, folder: Path, offsets_by_partition: dict[tuple[str, int], int]) -> Finished:
    wanted = [{"topic": topic, "partition": p, "offset": offset} for (topic, p), offset in offsets_by_partition.items()]
    file = folder / "delete.json"
    file.write_text(json.dumps({"version": 1, "partitions": wanted}))
    tool = "org.apache.kafka.tools.DeleteRecordsCommand"
    return java_tool(tool, "--bootstrap-server", bootstrap, "--offset-json-file", str(file))


def test_offsets_by_time_and_deletion(bootstrap: str, name: str, tmp_path: Path) -> None:
    make_topic(bootstrap, name, partitions=2)
    for i, delta in enumerate([0, 5000, 3000, 4000]):
        send(bootstrap, name, [Sent(b"%d" % i, partition=1, timestamp_ms=STAMP + delta)])
    assert offsets(bootstrap, "--topic", name).lines == [f"{name}:0:0", f"{name}:1:4"]
    assert offsets(bootstrap, "--topic-partitions", f"{name}:1", "--time", "earliest").lines == [f"{name}:1:0"]
    assert offsets(bootstrap, "--topic", name, "--time", "max-timestamp").lines == [f"{name}:1:1"]
    assert offsets(bootstrap, "--topic", name, "--time", str(STAMP + 1)).lines == [f"{name}:1:1"]
    assert "Could not match any topic-partitions" in offsets(bootstrap, "--topic", f"{name}-absent", code=1).err

    done = delete_records(bootstrap, tmp_path, {(name, 0): 77, (name, 1): 3})
    assert f"partition: {name}-1\tlow_watermark: 3" in done.out
    assert "OffsetOutOfRangeException: The requested offset is not within the range of offsets" in done.out
    assert offsets(bootstrap, "--topic", name, "--time", "earliest").lines == [f"{name}:0:0", f"{name}:1:3"]


def test_log_dirs(broker: BrokerProcess, name: str) -> None:
    make_topic(broker.bootstrap, name, partitions=2)
    send(broker.bootstrap, name, [Sent(b"x" * 100, partition=1)])
    tool = "org.apache.kafka.tools.LogDirsCommand"
    shown = java_tool(tool, "--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", name)
    assert shown.lines[0] == "Querying brokers for log directories information"
    assert shown.lines[1] == "Received log directory information from brokers 1"
    (described,) = json.loads(shown.lines[2])["brokers"]
    (folder,) = described["logDirs"]
    assert (described["broker"], folder["error"], folder["logDir"]) == (1, None, str(broker.data_dir))
    sizes = {p["partition"]: p for p in folder["partitions"]}
    on_disk = (broker.data_dir / f"{name}-1" / f"{0:020}.log").stat().st_size
    assert sizes[f"{name}-1"] == {"partition": f"{name}-1", "size": on_disk, "offsetLag": 0, "isFuture": False}
    assert sizes[f"{name}-0"]["size"] == 0
