"""Offsets and timestamps out of a stream of pieces: the same as of the whole, with no more memory than a piece."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.wire.batch import parse
from ottla.wire.compression import Codec, compress
from ottla.wire.record_checks import body_pieces
from ottla.wire.record_times import deltas
from ottla.wire.records import Record, encode, iterate
from support.raw_batches import enclosed, raw_record, sized, varint

MIB = 1 << 20

RECORDS = st.lists(
    st.tuples(st.integers(0, 2**40), st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=90)),
    min_size=1,
    max_size=30,
)


@given(RECORDS, st.integers(1, 50))
def test_pieces_of_any_size(made: list[tuple[int, bytes | None, bytes | None]], size: int) -> None:
    batch = parse(encode([Record(number, time, key, value) for number, (time, key, value) in enumerate(made)]))
    (body,) = body_pieces(batch)
    pieces = [body[begin : begin + size] for begin in range(0, len(body), size)]
    found = [(batch.base_offset + offset, batch.base_timestamp + time) for offset, time in deltas(pieces, batch.count)]
    assert found == [(each.offset, each.timestamp) for each in iterate(batch)]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
def test_a_batch_that_decompresses_to_hundreds_of_megabytes(codec: Codec) -> None:
    large = raw_record(0, bytes(200 * MIB)) + sized(b"\0" + varint(7) + varint(1) + b"\1\1\0")
    batch = parse(enclosed(compress(codec, large), count=2, attributes=int(codec)))
    del large
    tracemalloc.start()
    assert list(deltas(body_pieces(batch), batch.count)) == [(0, 0), (1, 7)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < batch.length + 6 * MIB


@pytest.mark.parametrize("body", [b"", raw_record(0, b"value")[:-20], varint(3) + b"\0\0\0\0", b"\xff" * 40])
def test_damage_is_refused(body: bytes) -> None:
    with pytest.raises(KafkaError) as refused:
        list(deltas([body], 2))
    assert refused.value.code is Code.invalid_record
