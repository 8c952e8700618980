"""Codecs: what Java writes is read, what is written Java's reader accepts (framing), and a bomb stops at its limit."""

import os
import tracemalloc

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.wire.compression import Codec, compress, decompress

CODECS = list(Codec)
COMPRESSED = [codec for codec in CODECS if codec is not Codec.NONE]
XERIAL = bytes.fromhex("82534e41505059000000000100000001")


@given(st.sampled_from(CODECS), st.binary(max_size=5000), st.integers(0, 40))
def test_round_trip(codec: Codec, data: bytes, repeats: int) -> None:
    data *= repeats
    assert bytes(decompress(codec, compress(codec, data))) == data


@pytest.mark.parametrize("codec", CODECS)
def test_large_incompressible(codec: Codec) -> None:
    data = os.urandom(300_000)
    assert bytes(decompress(codec, memoryview(compress(codec, memoryview(data))))) == data


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, [-1, 1, 9]), (Codec.LZ4, [1, 9, 17]), (Codec.ZSTD, [-131072, 3, 22])]
)
def test_levels_of_kafka(codec: Codec, levels: list[int]) -> None:
    data = b"the quick brown fox " * 500
    for level in levels:
        assert bytes(decompress(codec, compress(codec, data, level))) == data


def test_a_higher_level_is_smaller() -> None:
    data = b"".join(b"%d,%d;" % (n, n * n % 97) for n in range(20_000))
    for codec, low, high in ((Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, 1, 19)):
        assert len(compress(codec, data, high)) < len(compress(codec, data, low)), codec


def test_snappy_is_framed_for_java_and_read_raw_too() -> None:
    data = b"abc" * 40_000
    framed = compress(Codec.SNAPPY, data)
    assert framed.startswith(XERIAL)
    assert bytes(decompress(Codec.SNAPPY, framed + framed)) == data + data
    assert bytes(decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(data)))) == data


def test_lz4_frame_is_one_that_java_reads() -> None:
    descriptor = compress(Codec.LZ4, b"x" * 100_000)[4]
    assert descriptor & 0b0010_0000, "blocks must be independent"
    assert not descriptor & 0b0000_1100, "neither content size nor content checksum"


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_concatenated_streams(codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, b"one") + compress(codec, b"two"))) == b"onetwo"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_limit_is_exact(codec: Codec) -> None:
    stream = compress(codec, bytes(200_000))
    assert len(decompress(codec, stream, 200_000)) == 200_000
    with pytest.raises(KafkaError, match="199999") as raised:
        decompress(codec, stream, 199_999)
    assert raised.value.code is Code.corrupt_message


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bomb_costs_no_more_than_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(KafkaError):
            decompress(codec, bomb, 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_snappy_that_claims_gigabytes_is_not_believed() -> None:
    with pytest.raises(KafkaError):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + b"aaaa")
    with pytest.raises(KafkaError):
        decompress(Codec.SNAPPY, XERIAL + b"\x7f\xff\xff\xff" + b"aaaa")


@given(st.integers(0, 7), st.binary(max_size=300), st.sampled_from([b"", XERIAL, b"\x1f\x8b\x08", b"\x04\x22\x4d\x18"]))
def test_garbage_is_corrupt_or_bounded(codec: int, data: bytes, prefix: bytes) -> None:
    try:
        assert len(decompress(codec, prefix + data, 10_000)) <= max(10_000, len(prefix + data))
    except KafkaError as error:
        assert error.code is Code.corrupt_message


@given(st.sampled_from(COMPRESSED), st.data())
def test_damaged_stream_is_corrupt_or_bounded(codec: Codec, draw: st.DataObject) -> None:
    stream = bytearray(compress(codec, b"some records " * 50))
    stream[draw.draw(st.integers(0, len(stream) - 1))] ^= draw.draw(st.integers(1, 255))
    try:
        assert len(decompress(codec, bytes(stream), 10_000)) <= 10_000
    except KafkaError as error:
        assert error.code is Code.corrupt_message
