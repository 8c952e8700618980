"""The records of the state topic: bytes as Kafka 4.1.1's generated classes write them."""

import uuid

import pytest
from ottla.coordination.core.records import UNREADABLE, UnknownType
from ottla.share.core import records
from ottla.share.core.messages import ShareKey, StateBatch
from ottla.share.core.state import Kept, Update

TOPIC = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
KEY = ShareKey("g", TOPIC, 7)
KEPT = Kept(
    snapshot_epoch=1,
    state_epoch=2,
    leader_epoch=3,
    start=4,
    created_ms=5,
    written_ms=6,
    batches=(StateBatch(4, 9, 2, 1), StateBatch(10, 12, 0, 3)),
)
KEY_BYTES = "0001 67 00112233445566778899aabbccddeeff 00000007"
BATCH_BYTES = "03 0000000000000004 0000000000000009 02 0001 00 000000000000000a 000000000000000c 00 0003 00"


def test_snapshot() -> None:
    key, value = records.snapshot_record(KEY, KEPT)
    assert key == bytes.fromhex(f"0000 {KEY_BYTES}")
    numbers = "00000001 00000002 00000003 0000000000000004 0000000000000005 0000000000000006"
    assert value == bytes.fromhex(f"0000 {numbers} {BATCH_BYTES} 00")
    assert records.read(memoryview(key), memoryview(value)) == (KEY, KEPT)


def test_update() -> None:
    update = Update(leader_epoch=3, start=-1, batches=KEPT.batches)
    key, value = records.update_record(KEY, update, snapshot_epoch=1)
    assert key == bytes.fromhex(f"0001 {KEY_BYTES}")
    assert value == bytes.fromhex(f"0000 00000001 00000003 ffffffffffffffff {BATCH_BYTES} 00")
    assert records.read(memoryview(key), memoryview(value)) == (KEY, update)


def test_deletion() -> None:
    key, value = records.deletion_record(KEY)
    assert value is None and key == records.snapshot_record(KEY, KEPT)[0]
    assert records.read(memoryview(key), None) == (KEY, None)


def test_a_record_of_a_later_kafka() -> None:
    with pytest.raises(UnknownType):
        records.read(memoryview(bytes.fromhex(f"0009 {KEY_BYTES}")), None)


def test_every_cut_is_unreadable() -> None:
    key, value = records.snapshot_record(KEY, KEPT)
    assert value is not None
    for size in range(len(key)):
        with pytest.raises(UNREADABLE):
            records.read(memoryview(key)[:size], memoryview(value))
    for size in range(len(value)):
        with pytest.raises(UNREADABLE):
            records.read(memoryview(key), memoryview(value)[:size])
