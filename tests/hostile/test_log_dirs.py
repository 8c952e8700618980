"""What lies in a log dir when a broker starts after kill -9: files that are damaged, not its own, or very many.

A neighbour is served all the same, nothing is exchanged for something empty, and the log says what to do.
"""

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import crc32c
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from ottla.coordination.core.partitioning import partition_of
from support.fixtures import name
from support.librdkafka import make_topic, read
from support.neighbour import Neighbour
from support.ottla_broker import OttlaBroker
from support.raw_batches import AFTER_CRC, HEAD, enclosed, raw_record
from support.raw_requests import text

__all__ = ["name"]

PRODUCERS = 150_000
ROLLS = 25
ROLL_MS = 60
OFFSETS_PARTITIONS = 50


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaBroker]:
    """With two log dirs, of which one may go offline."""
    folder = tmp_path_factory.mktemp("broker")
    broker = OttlaBroker(folder, settings={"log.dirs": f"{folder}/one,{folder}/two"})
    broker.start()
    try:
        yield broker
        assert broker.stop() == 0
    finally:
        broker.close()


def with_records(broker: OttlaBroker, topic: str, count: int = 10, **config: str) -> Path:
    """A topic of one partition; its folder."""
    make_topic(broker.bootstrap, topic, **config)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(20) == 0
    (folder,) = broker.folder.glob(f"*/{topic}-0")
    return folder


def serves(broker: OttlaBroker, topic: str) -> None:
    neighbour = Neighbour(broker.bootstrap, topic)
    try:
        neighbour.finish().check()
    finally:
        neighbour.close()


def said_since(broker: OttlaBroker, before: int) -> str:
    return broker.log_path.read_text()[before:]


def test_files_that_are_damaged_or_nobodys(broker: OttlaBroker, name: str) -> None:
    """An unreadable `partition.metadata` had its log set aside and an empty one served; a core dump took the log dir
    offline."""
    damaged = with_records(broker, name)
    other = next(folder for folder in broker.folder.iterdir() if folder.is_dir() and folder != damaged.parent)
    before = len(broker.log_path.read_text())
    broker.kill()
    whole = (damaged / "partition.metadata").read_bytes()
    (damaged / "partition.metadata").write_bytes(b"\xff\x00 no properties")
    (other / "core-4711").write_bytes(b"\x7fELF")
    (other / "lost+found").mkdir()
    broker.start()
    serves(broker, f"{name}-neighbour")
    said = said_since(broker, before)
    assert "partition.metadata is malformed; restore it" in said
    assert "core-4711" in said
    assert f"{other} is offline" not in said
    assert [each.name for each in damaged.parent.iterdir() if each.name.startswith(name)] == [damaged.name]
    assert not (other / damaged.name).exists(), "no empty log is served for it"
    broker.kill()
    (damaged / "partition.metadata").write_bytes(whole)
    broker.start()
    assert [message.value() for message in read(broker.bootstrap, name)] == [b"%d" % number for number in range(10)]


def test_a_record_of_a_coordinator_that_cannot_be_read(broker: OttlaBroker, name: str) -> None:
    """It closed its partition's groups to everybody, for good."""
    make_topic(broker.bootstrap, name)
    commit(broker, name, 5)
    (folder,) = broker.folder.glob(f"*/__consumer_offsets-{partition_of(name, OFFSETS_PARTITIONS)}")
    broker.kill()
    (log,) = folder.glob("*.log")
    head = text("consumer") + struct.pack(">i", 1) + text("range") + text("m") + struct.pack(">q", -1)
    members_null = b"\0\3" + head + struct.pack(">i", -1)
    odd = enclosed(raw_record(0, members_null, key=b"\0\2" + text("odd")), count=1)
    data = log.read_bytes()
    log.write_bytes(data + placed(odd, end_of(data)))
    before = len(broker.log_path.read_text())
    broker.start()
    assert committed(broker, name) == 5
    commit(broker, name, 6)
    assert committed(broker, name) == 6
    assert "is skipped" in said_since(broker, before)


def test_a_log_of_very_many_producers(broker: OttlaBroker, name: str) -> None:
    """At each roll a snapshot of all of them was written on the loop: 110 ms for 150,000."""
    folder = with_records(broker, name, count=1, segment_ms=str(ROLL_MS))
    broker.kill()
    (log,) = folder.glob("*.log")
    log.write_bytes(log.read_bytes() + many_producers(1))
    broker.start()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    neighbour = Neighbour(broker.bootstrap, f"{name}-neighbour")
    try:
        for _ in range(ROLLS):
            producer.produce(name, b"the next segment", partition=0)
            assert producer.flush(20) == 0
            time.sleep(2 * ROLL_MS / 1000)  # segments roll by their age
        neighbour.finish().check()
    finally:
        neighbour.close()
    assert len(list(folder.glob("*.log"))) > ROLLS / 2
    assert sum(each.stat().st_size for each in folder.glob("*.snapshot")) < 64 << 20


def commit(broker: OttlaBroker, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False})
    try:
        consumer.commit(offsets=[TopicPartition(group, 0, offset)], asynchronous=False)
    finally:
        consumer.close()


def committed(broker: OttlaBroker, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(group, 0)], timeout=20)
        return int(found.offset)
    finally:
        consumer.close()


def placed(batch: bytes, offset: int) -> bytes:
    """As a leader of epoch 0 stores it."""
    return struct.pack(">q", offset) + batch[8:12] + bytes(4) + batch[16:]


def end_of(data: bytes) -> int:
    position = end = 0
    while position < len(data):
        base, length = struct.unpack_from(">qi", data, position)
        end = base + struct.unpack_from(">i", data, position + 23)[0] + 1
        position += 12 + length
    return int(end)


def many_producers(base_offset: int) -> bytes:
    """A batch of each."""
    record, now_ms, made = raw_record(0, b"v"), int(time.time() * 1000), []
    for number in range(PRODUCERS):
        covered = AFTER_CRC.pack(0, 0, now_ms, now_ms, 1_000_000 + number, 0, 0, 1) + record
        made.append(HEAD.pack(base_offset + number, 9 + len(covered), 0, 2, crc32c.crc32c(covered)) + covered)
    return b"".join(made)
