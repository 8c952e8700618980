"""Records: batches that Java's client built are read as they were meant, and nothing malformed hangs or passes."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.storage.workers.recompress import recompress
from ottla.wire import varints
from ottla.wire.assembly import assemble, emptied
from ottla.wire.batch import Batch, crc_matches, parse
from ottla.wire.compression import Codec
from ottla.wire.record_checks import InvalidRecords, body_pieces, check_records
from ottla.wire.records import Record, encode, iterate, payload

# Built by kafka-clients 4.1.1: offset 7, producer 42, epoch 3, sequence 9, leader epoch 5; three records.
JAVA = {
    "none": (
        "0000000000000007000001820000000502151513db0000000000020000018bcfe568000000018bcfe5680500000000000000"
        "2a0003000000090000000324000000046b30047630040268027804c3bc01e604000a0201d804"
        + "00" * 300
        + "0010001304046b320100"
    ),
    "gzip": (
        "00000000000000070000006e00000005024bb676d50001000000020000018bcfe568000000018bcfe5680500000000000000"
        "2a000300000009000000031f8b08000000000000ff5361606060c9366029336061ca60aa6039bc87f1190b031713e30d1686"
        "51403c1060106661c9366264000053deca9751010000"
    ),
    "snappy": (
        "00000000000000070000007d00000005021fec43770002000000020000018bcfe568000000018bcfe5680500000000000000"
        "2a0003000000090000000382534e4150505900000000010000000100000038d1026c24000000046b30047630040268027804"
        "c3bc01e604000a0201d80400fe0100fe0100fe0100fe0100ae01002010001304046b320100"
    ),
    "lz4": (
        "00000000000000070000006c000000050263cee2f00003000000020000018bcfe568000000018bcfe5680500000000000000"
        "2a0003000000090000000304224d186040822c000000ff0d24000000046b30047630040268027804c3bc01e604000a0201d8"
        "04000100ff1a9010001304046b32010000000000"
    ),
    "zstd": (
        "00000000000000070000006a0000000502952e78200004000000020000018bcfe568000000018bcfe5680500000000000000"
        "2a0003000000090000000328b52ffd00586c0100540224000000046b30047630040268027804c3bc01e604000a0201d80400"
        "10001304046b3201000100a4a8c009010000"
    ),
}
JAVA_RECORDS = [
    Record(7, 1700000000000, b"k0", b"v0", [("h", b"x"), ("ü", None)]),
    Record(8, 1700000000005, None, bytes(300), ()),
    Record(9, 1699999999990, b"k2", None, ()),
]

values = st.none() | st.binary(max_size=200)
histories = st.lists(
    st.tuples(
        st.integers(-(2**40), 2**45), values, values, st.lists(st.tuples(st.text(max_size=5), values), max_size=3)
    ),
    min_size=1,
    max_size=20,
)


def java(name: str) -> Batch:
    return parse(bytes.fromhex(JAVA[name]))


def made(history: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]]) -> list[Record]:
    return [Record(100 + i, *fields[:3], fields[3] or ()) for i, fields in enumerate(history)]


@pytest.mark.parametrize("name", JAVA)
def test_reads_what_java_wrote(name: str) -> None:
    batch = java(name)
    assert crc_matches(batch)
    assert list(iterate(batch)) == JAVA_RECORDS


def test_writes_what_java_writes() -> None:
    assert encode(JAVA_RECORDS, leader_epoch=5, producer=(42, 3, 9)).hex() == JAVA["none"]


@given(histories, st.sampled_from(list(Codec)))
def test_round_trip(history: list, codec: Codec) -> None:
    records = made(history)
    batch = parse(encode(records, codec=codec))
    assert crc_matches(batch)
    assert (batch.base_offset, batch.last_offset, batch.count) == (100, 100 + len(records) - 1, len(records))
    assert batch.max_timestamp == max(record.timestamp for record in records)
    assert list(iterate(batch)) == records


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    out = bytearray()
    varints.put(out, value)
    assert varints.take(bytes(out), 0) == (value, len(out))


def test_endless_varint_is_invalid() -> None:
    with pytest.raises(KafkaError) as raised:
        varints.take(b"\xff" * 100, 0)
    assert raised.value.code is Code.invalid_record


def raw(records: bytes, count: int, codec: Codec = Codec.NONE) -> Batch:
    fields = dict.fromkeys(("base_offset", "leader_epoch", "base_timestamp", "max_timestamp"), 0)
    producer = dict.fromkeys(("producer_id", "producer_epoch", "base_sequence"), -1)
    return parse(
        assemble(records, **fields, **producer, attributes=codec, last_offset_delta=max(count - 1, 0), count=count)
    )


@given(st.binary(max_size=200), st.integers(-5, 2**31 - 1), st.integers(0, 7))
def test_garbage_is_refused_or_read_whole(data: bytes, count: int, codec: int) -> None:
    batch = raw(data, count, codec)  # type: ignore[arg-type]
    try:
        assert len(list(iterate(batch))) == count
    except KafkaError as error:
        assert error.code in (Code.invalid_record, Code.unsupported_compression_type)


@given(histories, st.data())
def test_damage_is_refused_or_read_whole(history: list, draw: st.DataObject) -> None:
    good = parse(encode(made(history)))
    data = bytearray(payload(good))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        found = list(iterate(raw(bytes(data), good.count)))
        assert sum(len(one.key or b"") + len(one.value or b"") for one in found) <= len(data)
    except KafkaError as error:
        assert error.code is Code.invalid_record


def test_a_count_of_headers_that_runs_over_the_end_is_refused() -> None:
    """Found by damage: the last byte of a batch says that another one follows."""
    record = bytes.fromhex("0c000000010180")
    with pytest.raises(KafkaError) as raised:
        list(iterate(raw(record, 1)))
    assert raised.value.code is Code.invalid_record


@given(histories, st.integers(min_value=1))
def test_truncation_is_always_refused(history: list, cut: int) -> None:
    good = parse(encode(made(history)))
    data = payload(good)
    with pytest.raises(KafkaError):
        list(iterate(raw(data[: -(cut % len(data) or 1)], good.count)))


@pytest.mark.parametrize(
    ("data", "count", "says"),
    [
        (b"", 1, "claims 1 records in 0 bytes"),
        (bytes.fromhex("0c000000010100") + b"x", 1, "1 bytes follow"),
        (bytes.fromhex("0c000000010104"), 1, "claims 2 headers in 0 bytes"),
        (bytes.fromhex("1200000001010200") + b"\x00\x00", 1, "bytes follow the headers"),
        (bytes.fromhex("10000000010102010100"), 1, "a header has no name"),
        (bytes.fromhex("0a000000010100"), 1, "does not hold"),
        (bytes.fromhex("01000000010100"), 1, "does not hold"),
        (bytes.fromhex("ffffffff0f0000000101"), 1, "does not hold|runs over"),
        (bytes.fromhex("0c000000fe0100"), 1, "runs over"),
    ],
)
def test_malformed(data: bytes, count: int, says: str) -> None:
    with pytest.raises(KafkaError, match=says) as raised:
        list(iterate(raw(data, count)))
    assert raised.value.code is Code.invalid_record


def test_log_append_time_is_every_records_time() -> None:
    batch = java("none")
    batch.attributes |= 0x08
    assert {record.timestamp for record in iterate(batch)} == {batch.max_timestamp}


def test_compacted_topic_refuses_keyless_records_as_kafka_says_it() -> None:
    with pytest.raises(InvalidRecords) as raised:
        check_records(java("zstd"), body_pieces(java("zstd")), compacted_partition="orders-3")
    text = "Compacted topic cannot accept message without key in topic partition orders-3"
    assert raised.value.code is Code.invalid_record
    assert raised.value.record_errors == ((1, text),)
    assert raised.value.message == (
        "One or more records have been rejected due to 1 record errors in total, and only showing the first three "
        f"errors at most: [RecordError(batchIndex=1, message='{text}')]"
    )
    assert pickle.loads(pickle.dumps(raised.value)).record_errors == raised.value.record_errors
    keyed = parse(encode([Record(0, 0, b"", b"an empty key is a key")]))
    check_records(keyed, body_pieces(keyed), compacted_partition="orders-3")
    check_records(java("zstd"), body_pieces(java("zstd")), compacted_partition=None)


@pytest.mark.parametrize("source", JAVA)
@pytest.mark.parametrize("target", list(Codec))
def test_recompression_changes_only_the_codec(source: str, target: Codec) -> None:
    old = java(source)
    old_bytes = encode([one._replace(offset=one.offset - 7) for one in JAVA_RECORDS], codec=old.codec)
    new = parse(recompress(old_bytes, target))
    assert crc_matches(new)
    assert new.codec == target
    assert list(iterate(new)) == list(iterate(parse(old_bytes)))
    same = ("base_offset", "last_offset_delta", "base_timestamp", "max_timestamp", "base_sequence", "count")
    assert [getattr(new, name) for name in same] == [getattr(parse(old_bytes), name) for name in same]


def test_recompression_leaves_control_batches_and_refuses_gaps() -> None:
    marker = encode([Record(0, 5, b"\0\0\0\1", b"\0\0\0\0\0\0")], is_control=True)
    assert recompress(marker, Codec.GZIP) == marker
    with pytest.raises(KafkaError, match="offset delta 5"):
        recompress(encode([Record(0, 0, b"a", b""), Record(5, 0, b"b", b"")]), Codec.GZIP)


def test_an_emptied_batch_keeps_what_a_producer_needs() -> None:
    old, new = java("lz4"), parse(emptied(java("lz4")))
    kept = (
        "base_offset",
        "last_offset",
        "leader_epoch",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "last_sequence",
    )
    assert [getattr(new, name) for name in kept] == [getattr(old, name) for name in kept]
    assert (new.count, new.codec, new.size, crc_matches(new), list(iterate(new))) == (0, 0, 61, True, [])
