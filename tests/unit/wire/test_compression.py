"""Codecs: what Java writes is read, what is written Java's reader accepts (framing), and a bomb stops at its limit."""

import os
import tracemalloc

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.errors import Code, KafkaError
from ottla.wire.compression import PIECE_BYTES_MAX, Codec, compress, decompress, pieces

CODECS = list(Codec)
COMPRESSED = [codec for codec in CODECS if codec is not Codec.NONE]
REFUSALS = (Code.invalid_record, Code.message_too_large, Code.unsupported_compression_type)
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


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_concatenated_streams(codec: Codec) -> None:
    assert bytes(decompress(codec, compress(codec, b"one") + compress(codec, b"two"))) == b"onetwo"


@pytest.mark.parametrize("codec", COMPRESSED)
def test_pieces_are_small_and_together_everything(codec: Codec) -> None:
    data = b"".join(b"%d," % (n * n) for n in range(150_000))
    found = list(pieces(codec, compress(codec, data)))
    assert b"".join(found) == data
    assert max(map(len, found)) <= PIECE_BYTES_MAX
    assert len(found) >= len(data) // PIECE_BYTES_MAX


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_never_held_whole(codec: Codec) -> None:
    bomb = compress(codec, bytes(50_000_000))
    tracemalloc.start()
    try:
        assert sum(map(len, pieces(codec, bomb))) == 50_000_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


LINKED = lz4.frame.compress(os.urandom(200_000), block_linked=True)
UNREADABLE = {
    "no gzip at all": (Codec.GZIP, b"nonsense", "with gzip"),
    "no lz4 at all": (Codec.LZ4, b"nonsense", "magic bytes"),
    "no zstd at all": (Codec.ZSTD, b"nonsense", "with zstd"),
    "no snappy at all": (Codec.SNAPPY, b"\x10nonsense", "with snappy"),
    "nothing": (Codec.ZSTD, b"", "in the middle"),
    "gzip that ends early": (Codec.GZIP, compress(Codec.GZIP, bytes(9999))[:-1], "in the middle of a gzip"),
    "lz4 that ends early": (Codec.LZ4, compress(Codec.LZ4, bytes(9999))[:-1], "in the middle of a lz4"),
    "zstd that ends early": (Codec.ZSTD, compress(Codec.ZSTD, bytes(9999))[:-1], "in the middle of a zstd"),
    "gzip with a tail": (Codec.GZIP, compress(Codec.GZIP, b"x") + b"tail", "with gzip"),
    "zstd with a tail": (Codec.ZSTD, compress(Codec.ZSTD, b"x") + b"tail", "with zstd"),
    "lz4 with a tail": (Codec.LZ4, compress(Codec.LZ4, b"x") + b"tail", "4 bytes follow"),
    "two lz4 frames": (Codec.LZ4, 2 * compress(Codec.LZ4, b"x"), "follow the lz4 stream"),
    "lz4 that Java cannot read": (Codec.LZ4, LINKED, "depend on each other"),
    "a zstd window of 1 GiB": (Codec.ZSTD, b"\x28\xb5\x2f\xfd\x00\xa0" + bytes(20), "too much memory"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_streams_say_why(name: str) -> None:
    codec, data, says = UNREADABLE[name]
    with pytest.raises(KafkaError, match=says) as raised:
        list(pieces(codec, data))
    assert raised.value.code is Code.invalid_record


def test_lz4_frames_of_other_clients_are_read() -> None:
    """Checksums of blocks and content, a known size, small and large blocks; the header falls apart anywhere."""
    data = os.urandom(100) * 5000
    for block_size in (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB):
        frame = lz4.frame.compress(
            data, block_linked=False, content_checksum=True, block_checksum=True, store_size=True, block_size=block_size
        )
        assert bytes(decompress(Codec.LZ4, frame)) == data


@pytest.mark.parametrize("codec", COMPRESSED)
def test_limit_is_exact(codec: Codec) -> None:
    stream = compress(codec, bytes(200_000))
    assert len(decompress(codec, stream, 200_000)) == 200_000
    with pytest.raises(KafkaError, match="199999") as raised:
        decompress(codec, stream, 199_999)
    assert raised.value.code is Code.message_too_large


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
        assert error.code in REFUSALS


@given(st.sampled_from(COMPRESSED), st.data())
def test_damaged_stream_is_corrupt_or_bounded(codec: Codec, draw: st.DataObject) -> None:
    stream = bytearray(compress(codec, b"some records " * 50))
    stream[draw.draw(st.integers(0, len(stream) - 1))] ^= draw.draw(st.integers(1, 255))
    try:
        assert len(decompress(codec, bytes(stream), 10_000)) <= 10_000
    except KafkaError as error:
        assert error.code in REFUSALS
