"""The batch header: read, checked, stamped."""

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.wire import batch as batches
from ottla.wire.batch import HEADER, Batch, check, crc_matches, increment_sequence, iterate, parse, sole
from ottla.wire.records import Record, encode
from support.logs import T0, make_batch, make_marker

GOOD = bytes(make_batch(3, producer=(7, 2, 5)).data)


def changed(data: bytes = GOOD, *, fix_crc: bool = True, **fields: int) -> bytes:
    names = "base_offset length leader_epoch magic crc attributes last_offset_delta base_timestamp max_timestamp"
    names += " producer_id producer_epoch base_sequence count"
    values = dict(zip(names.split(), HEADER.unpack_from(data), strict=True)) | fields
    head = HEADER.pack(*values.values())
    if fix_crc and "crc" not in fields:
        values["crc"] = crc32c(head[21:] + data[61:])
    return HEADER.pack(*values.values()) + data[61:]


def test_every_field_of_the_header():
    batch = parse(changed(base_offset=0x0102030405060708, leader_epoch=9, attributes=0x1C))
    assert (batch.base_offset, batch.leader_epoch, batch.magic) == (0x0102030405060708, 9, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (T0, T0 + 2)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (7, 2, 5, 7)
    assert (batch.count, batch.last_offset_delta, batch.last_offset) == (3, 2, batch.base_offset + 2)
    assert (batch.codec, batch.timestamp_type, batch.is_transactional, batch.is_control) == (4, 1, True, False)
    assert batch.size == len(GOOD) == batch.length + 12


@pytest.mark.parametrize(("sequence", "by", "result"), [(0, 4, 4), (2**31 - 1, 1, 0), (2**31 - 3, 4, 1)])
def test_sequences_wrap_at_int32(sequence, by, result):
    assert increment_sequence(sequence, by) == result


def test_a_good_batch_passes():
    check(parse(GOOD))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"base_offset": 1}, Code.invalid_record),
        ({"crc": 1}, Code.corrupt_message),
        ({"magic": 3}, Code.corrupt_message),
        ({"count": 2}, Code.invalid_record),
        ({"count": 0}, Code.invalid_record),
        ({"last_offset_delta": -1}, Code.invalid_record),
        ({"attributes": 0x20}, Code.invalid_record),
        ({"attributes": 0x07}, Code.unsupported_compression_type),
        ({"base_sequence": -1}, Code.invalid_record),
    ],
)
def test_what_a_client_may_not_send(fields, code):
    with pytest.raises(KafkaError) as refusal:
        check(parse(changed(**fields)))
    assert refusal.value.code == code
    assert refusal.value.message


def test_one_flipped_bit_behind_the_crc_is_seen():
    for position in range(21, len(GOOD)):
        damaged = bytearray(GOOD)
        damaged[position] ^= 0x10
        assert not crc_matches(Batch(damaged, HEADER.unpack_from(damaged)))


@given(st.integers(0, len(GOOD) - 1))
def test_a_batch_cut_anywhere_is_corrupt(size):
    with pytest.raises(KafkaError) as refusal:
        parse(GOOD[:size])
    assert refusal.value.code == Code.corrupt_message


@given(st.binary(max_size=200))
def test_any_bytes_are_parsed_or_refused(data):
    try:
        assert parse(data).size <= len(data)
    except KafkaError as refusal:
        assert refusal.code == Code.corrupt_message


@given(st.binary(max_size=200))
def test_any_produced_bytes_are_a_batch_or_refused_with_kafkas_codes(data):
    try:
        sole(data, version=12)
    except KafkaError as refusal:
        assert refusal.code in (Code.corrupt_message, Code.invalid_record)


@pytest.mark.parametrize(
    ("data", "version", "code"),
    [
        (None, 12, Code.invalid_record),
        (b"", 12, Code.invalid_record),
        (GOOD[:-1], 12, Code.invalid_record),
        (changed(length=5), 12, Code.corrupt_message),
        (changed(length=20), 12, Code.corrupt_message),
        (GOOD + GOOD, 12, Code.invalid_record),
        (changed(magic=1), 12, Code.invalid_record),
        (changed(attributes=4), 6, Code.unsupported_compression_type),
    ],
)
def test_a_produce_request_holds_one_batch_of_magic_2(data, version, code):
    with pytest.raises(KafkaError) as refusal:
        sole(data, version=version)
    assert refusal.value.code == code


def test_bytes_after_the_batch_that_are_no_batch_are_left_out_as_kafka_does():
    batch = sole(memoryview(GOOD + GOOD[:40]), version=12)
    assert bytes(batch.data) == GOOD


def test_iterate_gives_each_batch_its_own_bytes():
    second = bytes(make_marker().data)
    assert [bytes(batch.data) for batch in iterate(memoryview(GOOD + second))] == [GOOD, second]
    with pytest.raises(KafkaError):
        list(iterate(GOOD + second[:-1]))


def test_a_stamp_leaves_the_crc_valid():
    head = batches.STAMP.pack(1234, parse(GOOD).length, 5)
    stamped = parse(head + GOOD[16:])
    assert crc_matches(stamped)
    assert (stamped.base_offset, stamped.leader_epoch, stamped.last_offset) == (1234, 5, 1236)


def test_append_time_rewrites_attributes_max_timestamp_and_crc_only():
    batch = parse(encode([Record(0, 5, b"k", b"v"), Record(1, 9, b"k", b"v")], codec=2))
    head = batches.stamp_append_time(batch, base_offset=7, leader_epoch=1, now_ms=T0)
    stamped = parse(head + bytes(batch.data)[61:])
    assert crc_matches(stamped)
    assert (stamped.timestamp_type, stamped.max_timestamp, stamped.base_timestamp, stamped.codec) == (1, T0, 5, 2)
    assert bytes(stamped.data)[23:35] == bytes(batch.data)[23:35]
    assert bytes(stamped.data)[43:] == bytes(batch.data)[43:]
