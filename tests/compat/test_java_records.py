"""Java's producer and consumer through Kafka's own command-line tools and one small admin program."""

import json
import re

import pytest
from support.java import java_program, java_tool
from support.librdkafka import Sent, make_topic, read, send

TOOLS = "org.apache.kafka.tools"


def test_console_producer_and_consumer(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    lines = "".join(f"k{i}:v{i}\n" for i in range(50))
    java_tool(f"{TOOLS}.ConsoleProducer", "--bootstrap-server", bootstrap, "--topic", name, *keyed, stdin=lines)
    place = ("--topic", name, "--partition", "0")
    consumer = (f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, *place)
    shown = java_tool(
        *consumer, "--offset", "earliest", "--max-messages", "50", "--timeout-ms", "30000",
        "--property", "print.key=true", "--property", "print.offset=true",
    )  # fmt: skip
    assert shown.lines == [f"Offset:{i}\tk{i}\tv{i}" for i in range(50)]
    assert "Processed a total of 50 messages" in shown.err
    shown = java_tool(*consumer, "--offset", "47", "--max-messages", "3", "--timeout-ms", "30000")
    assert shown.lines == ["v47", "v48", "v49"]


def test_producer_performance(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=3)
    shown = java_tool(
        f"{TOOLS}.ProducerPerformance", "--topic", name, "--num-records", "20000", "--record-size", "200",
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={bootstrap}", "acks=all", "compression.type=lz4",
    )  # fmt: skip
    assert re.match(r"20000 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency", shown.lines[-1])
    assert sum(len(read(bootstrap, name, p)) for p in range(3)) == 20_000


def test_verifiable_producer(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name)
    tool = f"{TOOLS}.VerifiableProducer"
    shown = java_tool(tool, "--bootstrap-server", bootstrap, "--topic", name, "--max-messages", "100", "--acks", "-1")
    events = [json.loads(line) for line in shown.lines]
    acknowledged = [(e["offset"], e["value"]) for e in events if e["name"] == "producer_send_success"]
    assert acknowledged == [(i, str(i)) for i in range(100)]
    assert (events[-1]["sent"], events[-1]["acked"]) == (100, 100)
    assert [m.value() for m in read(bootstrap, name)] == [b"%d" % i for i in range(100)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_java_reads_what_librdkafka_compressed(bootstrap: str, name: str, codec: str) -> None:
    make_topic(bootstrap, name)
    send(bootstrap, name, [Sent(b"line %d" % i) for i in range(300)], compression_type=codec)
    shown = java_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", "--bootstrap-server", bootstrap, "--topic", name, "--partition", "0",
        "--offset", "earliest", "--max-messages", "300", "--timeout-ms", "30000",
    )  # fmt: skip
    assert shown.lines == [f"line {i}" for i in range(300)]


def test_admin_calls_that_no_tool_makes(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2, retention_ms="100000")
    shown = dict(line.split("=", 1) for line in java_program("AdminCalls", bootstrap, name).lines)
    assert shown["described"] == f"{name} 0:1:[1] 1:1:[1]"
    assert re.fullmatch(r"\d+ 0 4", shown["producer"])
    assert f"TOPIC {name}" in shown["resources"].split(", ")
    assert shown["positions"] == "earliest 0 latest 5 epoch 0"
    assert shown["consumed"] == "v0 v1 v2 v3 v4"
    assert shown["partitions-of-absent"] == "UnknownTopicOrPartitionException"
