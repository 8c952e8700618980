"""The four codecs, in the framings that Java's client and librdkafka write. Pure; asked through `compression`."""

import zlib
from collections.abc import Callable
from struct import Struct

import cramjam

from ottla.errors import Code, KafkaError
from ottla.wire.compression import Codec, Data

__all__ = ["COMPRESS", "decompress"]

_FIRST_GUESS_BYTES = 64 << 10
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable by version 1
_XERIAL_BLOCK_BYTES = 32 << 10
_LENGTH = Struct(">i")
# Kafka's default levels; snappy has none. Kafka writes LZ4's default (9) with the fast compressor, not at height 9.
_GZIP_DEFAULT, _LZ4_DEFAULT, _ZSTD_DEFAULT = 6, 9, 3


def decompress(codec: int, data: Data, size_bytes_max: int) -> Data:
    try:
        return _DECOMPRESS[codec](data, size_bytes_max)
    except KeyError:
        raise _corrupt(f"compression type {codec} does not exist") from None
    except (cramjam.DecompressionError, zlib.error) as error:
        raise _corrupt(f"records cannot be decompressed with {Codec(codec).label}: {error}") from None


def _corrupt(message: str) -> KafkaError:
    return KafkaError(Code.corrupt_message, message)


def _too_large(size_bytes_max: int) -> KafkaError:
    return _corrupt(f"records decompress to more than {size_bytes_max} bytes")


def _gzip(data: Data, level: int | None) -> bytes:
    return bytes(cramjam.gzip.compress(data, level=_GZIP_DEFAULT if level in (None, -1) else level))


def _gunzip(data: Data, size_bytes_max: int) -> bytes:
    """All members of the stream, as Java's GZIPInputStream reads it."""
    members: list[bytes] = []
    room = size_bytes_max
    while data or not members:
        stream = zlib.decompressobj(wbits=31)
        members.append(stream.decompress(data, room + 1))
        room -= len(members[-1])
        if room < 0:
            raise _too_large(size_bytes_max)
        if not stream.eof:
            raise _corrupt("records end in the middle of a gzip stream")
        data = stream.unused_data
    return members[0] if len(members) == 1 else b"".join(members)


def _snappy(data: Data, level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _unsnappy(data: Data, size_bytes_max: int) -> bytes:
    """Java frames snappy in blocks (xerial); librdkafka writes one raw block. Both arrive."""
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        return _unsnappy_block(view, size_bytes_max, so_far=0)
    blocks: list[bytes] = []
    total = 0
    position = 0
    while position < len(view):
        if view[position : position + 8] == _XERIAL_MAGIC:  # streams may be concatenated
            position += len(_XERIAL_HEADER)
            continue
        start = position + 4
        if start > len(view):
            raise _corrupt("records end in the middle of a snappy frame")
        (length,) = _LENGTH.unpack_from(view, position)
        if length <= 0 or start + length > len(view):
            raise _corrupt(f"a snappy frame claims {length} bytes, {len(view) - start} remain")
        blocks.append(_unsnappy_block(view[start : start + length], size_bytes_max, so_far=total))
        total += len(blocks[-1])
        position = start + length
    return b"".join(blocks)


def _unsnappy_block(block: memoryview, size_bytes_max: int, *, so_far: int) -> bytes:
    if so_far + cramjam.snappy.decompress_raw_len(block) > size_bytes_max:  # the codec would allocate what is claimed
        raise _too_large(size_bytes_max)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(data: Data, level: int | None) -> bytes:
    """Independent blocks and no content checksum: Java's reader refuses anything else."""
    height = 0 if level in (None, _LZ4_DEFAULT) else level
    stream = cramjam.lz4.Compressor(level=height, content_checksum=False, block_linked=False)
    stream.compress(bytes(data))
    return bytes(stream.finish())


def _zstd(data: Data, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_DEFAULT if level is None else level))


def _into_growing_buffer(into: Callable[[Data, bytearray], int], data: Data, size_bytes_max: int) -> memoryview:
    """Decompress into a buffer of guessed size, four times larger at every retry, so that a bomb stops at the limit."""
    size = min(max(_FIRST_GUESS_BYTES, 4 * len(data)), size_bytes_max)
    while True:
        buffer = bytearray(size)
        try:
            return memoryview(buffer)[: into(data, buffer)]
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if size == size_bytes_max:
                raise _too_large(size_bytes_max) from None
            size = min(4 * size, size_bytes_max)


COMPRESS: dict[Codec, Callable[[Data, int | None], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESS: dict[int, Callable[[Data, int], Data]] = {
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: lambda data, limit: _into_growing_buffer(cramjam.lz4.decompress_into, data, limit),
    Codec.ZSTD: lambda data, limit: _into_growing_buffer(cramjam.zstd.decompress_into, data, limit),
}
