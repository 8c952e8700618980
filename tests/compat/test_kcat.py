"""kcat: an old librdkafka (2.0.2) from Debian."""

import json
import subprocess

import pytest
from support.kafka_jars import require_program
from support.librdkafka import make_topic


@pytest.fixture(scope="module", autouse=True)
def kcat_program() -> str:
    return require_program("kcat", debian_package="kcat")


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    command = ["kcat", "-b", bootstrap, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_produce_and_consume(bootstrap: str, name: str, codec: str) -> None:
    make_topic(bootstrap, name)
    lines = "".join(f"key{i}:value{i}\n" for i in range(200))
    settings = ("-K:", "-z", codec, "-H", "h=1", "-X", "enable.idempotence=true")
    kcat(bootstrap, "-P", "-t", name, "-p", "0", *settings, stdin=lines)
    out = kcat(bootstrap, "-C", "-t", name, "-p", "0", "-o", "beginning", "-e", "-q", "-J")
    records = [json.loads(line) for line in out.splitlines()]
    assert [(r["offset"], r["key"], r["payload"]) for r in records] == [(i, f"key{i}", f"value{i}") for i in range(200)]
    assert all(r["headers"] == ["h", "1"] for r in records)
    assert kcat(bootstrap, "-C", "-t", name, "-p", "0", "-o", "-2", "-e", "-q") == "value198\nvalue199\n"
    assert kcat(bootstrap, "-C", "-t", name, "-p", "0", "-o", "190", "-c", "1", "-q") == "value190\n"


def test_list_and_query(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, partitions=2)
    listed = json.loads(kcat(bootstrap, "-L", "-J"))
    assert listed["brokers"] == [{"id": 1, "name": bootstrap}]
    (topic,) = [t for t in listed["topics"] if t["topic"] == name]
    assert [(p["partition"], p["leader"], p["replicas"], p["isrs"]) for p in topic["partitions"]] == [
        (number, 1, [{"id": 1}], [{"id": 1}]) for number in (0, 1)
    ]
    kcat(bootstrap, "-P", "-t", name, "-p", "1", stdin="a\nb\nc\n")
    assert kcat(bootstrap, "-Q", "-t", f"{name}:1:-1").strip() == f"{name} [1] offset 3"
    assert kcat(bootstrap, "-Q", "-t", f"{name}:1:0").strip() == f"{name} [1] offset 0"
