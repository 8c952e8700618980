"""Kafka's DumpLogSegments reads our folder: logs, indexes, producer snapshots; and a restart keeps everything."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from confluent_kafka import Producer
from support.dump import batches, dump, files_of
from support.librdkafka import Sent, make_topic, read, send, send_with, watermarks
from support.process import BrokerProcess

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
STAMP = 1_700_000_000_000


@pytest.fixture(scope="module")
def stopped(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A broker that took all kinds of records and was stopped in order."""
    broker = make_broker()
    broker.start()
    bootstrap = broker.bootstrap
    for codec in CODECS:
        make_topic(bootstrap, f"codec-{codec}", segment_bytes=1_048_576, index_interval_bytes=1024)
        records = [Sent(b"%05d" % i + b"payload " * 40, key=b"key %d" % i, timestamp_ms=STAMP + i) for i in range(5000)]
        send(bootstrap, f"codec-{codec}", records, compression_type=codec, batch_size=20_000)
    for codec in ["gzip", "snappy", "lz4", "zstd", "uncompressed"]:
        make_topic(bootstrap, f"to-{codec}", compression_type=codec)
        records = [Sent(b"payload %d" % i, key=b"k", headers=[("h", b"v")]) for i in range(100)]
        send(bootstrap, f"to-{codec}", records, compression_type="none" if codec != "uncompressed" else "zstd")
    make_topic(bootstrap, "append-time", message_timestamp_type="LogAppendTime")
    send(bootstrap, "append-time", [Sent(b"%d" % i, timestamp_ms=STAMP) for i in range(10)])
    broker.stop()
    return broker


@pytest.mark.parametrize("codec", CODECS)
def test_logs_and_indexes_are_sound(stopped: BrokerProcess, codec: str) -> None:
    logs = files_of(stopped.data_dir, f"codec-{codec}", ".log")
    if codec == "none":
        assert len(logs) > 1, "the topic was to have several segments"
    text = dump(files_of(stopped.data_dir, f"codec-{codec}", ".log", ".index", ".timeindex"))
    found = batches(text)
    assert all(batch.valid and batch.codec == codec and batch.producer_id >= 0 for batch in found)
    assert found[0].base_offset == 0 and found[-1].last_offset == 4999
    assert all(after.base_offset == before.last_offset + 1 for before, after in pairwise(found))
    assert len(re.findall(r"\| offset: \d+ ", text)) == 5000
    if codec == "none":
        assert re.search(r"^offset: \d+ position: [1-9]\d*$", text, re.M), "no entry in any offset index"
        assert re.search(rf"^timestamp: {STAMP + 4999} offset: 4999$", text, re.M), "the last timestamp is not indexed"


def test_producer_snapshot(stopped: BrokerProcess) -> None:
    snapshots = files_of(stopped.data_dir, "codec-none", ".snapshot")
    text = dump([snapshots[-1]], deep=False)
    assert re.search(r"producerId: \d+ producerEpoch: 0 .*lastSequence: 4999 lastOffset: 4999", text)


def test_partition_files(stopped: BrokerProcess) -> None:
    folder = stopped.data_dir / "codec-none-0"
    assert re.fullmatch(r"version: 0\ntopic_id: [\w-]{22}\n?", (folder / "partition.metadata").read_text())
    assert (folder / "leader-epoch-checkpoint").read_text().split() == ["0", "1", "0", "0"]
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint", "log-start-offset-checkpoint"):
        version, count, *lines = (stopped.data_dir / name).read_text().splitlines()
        assert version == "0" and int(count) == len(lines)
    assert "codec-none 0 5000" in (stopped.data_dir / "replication-offset-checkpoint").read_text().splitlines()
    lines = (stopped.data_dir / "meta.properties").read_text().splitlines()
    meta = dict(line.split("=") for line in lines if "=" in line)
    assert {"cluster.id", "node.id", "directory.id", "version"} <= set(meta) and meta["node.id"] == "1"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_recompressed_as_the_topic_asks(stopped: BrokerProcess, codec: str) -> None:
    found = batches(dump(files_of(stopped.data_dir, f"to-{codec}", ".log")))
    assert {batch.codec for batch in found} == {"none" if codec == "uncompressed" else codec}
    assert (found[0].base_offset, found[-1].last_offset) == (0, 99)


def test_append_time_is_stamped(stopped: BrokerProcess) -> None:
    found = batches(dump(files_of(stopped.data_dir, "append-time", ".log")))
    assert {batch.timestamp_type for batch in found} == {"LogAppendTime"}


def test_after_a_restart_everything_is_there(stopped: BrokerProcess) -> None:
    stopped.start()
    for codec in CODECS:
        got = read(stopped.bootstrap, f"codec-{codec}")
        assert [m.value()[:5] for m in got] == [b"%05d" % i for i in range(5000)]
    for codec in ["gzip", "snappy", "lz4", "zstd", "uncompressed"]:
        got = read(stopped.bootstrap, f"to-{codec}")
        expected = [(b"k", b"payload %d" % i, [("h", b"v")]) for i in range(100)]
        assert [(m.key(), m.value(), m.headers()) for m in got] == expected
    assert all(m.timestamp()[0] == 2 and m.timestamp()[1] > STAMP for m in read(stopped.bootstrap, "append-time"))


def test_an_idempotent_producer_lives_through_restarts(stopped: BrokerProcess) -> None:
    if not stopped.running:
        stopped.start()
    make_topic(stopped.bootstrap, "sequences")
    producer = Producer({"bootstrap.servers": stopped.bootstrap, "enable.idempotence": True, "log_level": 0})
    for round_number in range(2):
        reports = send_with(producer, "sequences", [Sent(b"%d" % (100 * round_number + i)) for i in range(100)])
        assert not reports.errors
        stopped.restart()
    assert not send_with(producer, "sequences", [Sent(b"200")]).errors
    assert [m.value() for m in read(stopped.bootstrap, "sequences")] == [b"%d" % i for i in range(201)]
    assert watermarks(stopped.bootstrap, "sequences") == (0, 201)
