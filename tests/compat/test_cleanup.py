"""What the broker removes by itself: compaction and retention, judged by consuming."""

import time

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient
from support.dump import dump, files_of
from support.librdkafka import DEADLINE_S, Sent, make_topic, read, send, watermarks
from support.process import BrokerProcess
from support.waiting import eventually

BROKER_SETTINGS = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.dedupe.buffer.size": "4000000",
}
COMPACT_EAGERLY = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.01", "segment_ms": "500"}
CLEANED_WITHIN_S = 40.0


def roll(bootstrap: str, topic: str) -> None:
    """Only closed segments are cleaned; a record after segment.ms closes the one before."""
    time.sleep(0.6)  # segment.ms itself: the passing of time is the input here
    send(bootstrap, topic, [Sent(b"roll", key=b"roll")])


def contents(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    return [(m.key(), m.value()) for m in read(bootstrap, topic) if m.key() != b"roll"]


def marks_once(bootstrap: str, topic: str, *, low_at_least: int) -> tuple[int, int]:
    """The watermarks, as soon as so much was deleted."""
    return eventually(
        lambda: watermarks(bootstrap, topic), lambda marks: marks[0] >= low_at_least, timeout_s=CLEANED_WITHIN_S
    )


def test_compaction_keeps_the_latest_of_each_key(broker: BrokerProcess, name: str) -> None:
    bootstrap = broker.bootstrap
    make_topic(bootstrap, name, **COMPACT_EAGERLY)
    for version in range(3):
        send(bootstrap, name, [Sent(b"%d-%d" % (version, key), key=b"key%d" % key) for key in range(200)])
        roll(bootstrap, name)
    latest = [(b"key%d" % key, b"2-%d" % key) for key in range(200)]
    eventually(lambda: contents(bootstrap, name), lambda found: found == latest, timeout_s=CLEANED_WITHIN_S)
    offsets = [m.offset() for m in read(bootstrap, name)]
    end = watermarks(bootstrap, name)[1]
    assert offsets == sorted(set(offsets)) and offsets[-1] == end - 1, "offsets must not move"
    # A position in a hole goes on at the next record that is left.
    assert read(bootstrap, name, start=5)[0].offset() == offsets[0] > 5
    dump(files_of(broker.data_dir, name, ".log"))


def test_compressed_batches_are_compacted(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, **COMPACT_EAGERLY)
    for version in range(2):
        records = [Sent(b"%d-%d" % (version, key), key=b"key%d" % key) for key in range(100)]
        send(bootstrap, name, records, compression_type="zstd", linger_ms=100)
        roll(bootstrap, name)
    latest = [(b"key%d" % key, b"1-%d" % key) for key in range(100)]
    eventually(lambda: contents(bootstrap, name), lambda found: found == latest, timeout_s=CLEANED_WITHIN_S)


def test_tombstones_delete_and_then_vanish(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, **COMPACT_EAGERLY, delete_retention_ms="500")
    send(bootstrap, name, [Sent(b"v", key=b"gone"), Sent(b"v", key=b"kept")])
    send(bootstrap, name, [Sent(None, key=b"gone")])
    roll(bootstrap, name)

    def cleaned() -> list[tuple[bytes | None, bytes | None]]:
        # The tombstone's time runs from the pass that first kept it; later passes need something dirty.
        roll(bootstrap, name)
        return contents(bootstrap, name)

    eventually(cleaned, lambda found: found == [(b"kept", b"v")], timeout_s=CLEANED_WITHIN_S)


def test_keyless_record_to_a_compacted_topic_is_refused(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, cleanup_policy="compact")
    reports = send(bootstrap, name, [Sent(b"no key")], acks="all")
    assert reports.errors[0].code() == KafkaError.INVALID_RECORD
    assert watermarks(bootstrap, name) == (0, 0)
    assert send(bootstrap, name, [Sent(b"v", key=b"k")]).offsets == {0: 0}


def test_retention_by_size(broker: BrokerProcess, name: str) -> None:
    make_topic(broker.bootstrap, name, segment_bytes=1_048_576, retention_bytes=2_000_000)
    send(broker.bootstrap, name, [Sent(b"x" * 10_000) for _ in range(600)], batch_size=100_000)
    low, high = marks_once(broker.bootstrap, name, low_at_least=300)
    assert high == 600 and low < 500
    assert [m.offset() for m in read(broker.bootstrap, name)] == list(range(low, 600))
    eventually(lambda: files_of(broker.data_dir, name, ".deleted"), lambda files: files == [])
    sizes = [path.stat().st_size for path in files_of(broker.data_dir, name, ".log")]
    assert 2_000_000 <= sum(sizes) < 4_200_000


def test_retention_by_time(bootstrap: str, name: str) -> None:
    make_topic(bootstrap, name, segment_ms="500", retention_ms="100000")
    now = int(time.time() * 1000)
    send(bootstrap, name, [Sent(b"old", timestamp_ms=now - 200_000)])
    roll(bootstrap, name)
    assert marks_once(bootstrap, name, low_at_least=1) == (1, 2)
    assert [m.value() for m in read(bootstrap, name)] == [b"roll"]


def test_deleted_records_free_their_segments(broker: BrokerProcess, name: str) -> None:
    make_topic(broker.bootstrap, name, segment_bytes=1_048_576)
    send(broker.bootstrap, name, [Sent(b"x" * 10_000) for _ in range(400)], batch_size=100_000)
    assert len(files_of(broker.data_dir, name, ".log")) >= 4
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    partition = TopicPartition(name, 0, 390)
    assert admin.delete_records([partition])[partition].result(DEADLINE_S).low_watermark == 390
    eventually(lambda: files_of(broker.data_dir, name, ".log"), lambda logs: len(logs) == 1)
    broker.restart()
    assert watermarks(broker.bootstrap, name) == (390, 400)


def test_deleted_topic_frees_its_folder(broker: BrokerProcess, name: str) -> None:
    make_topic(broker.bootstrap, name, partitions=2)
    send(broker.bootstrap, name, [Sent(b"x", partition=1)])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([name])[name].result(DEADLINE_S)
    eventually(lambda: list(broker.data_dir.glob(f"{name[:20]}*")), lambda left: left == [])
