"""The four codecs, in the framings that Java's client and librdkafka write. Pure; asked through `compression`.

Decompression is a stream of pieces: whatever a body claims, no more is held than one piece and what the codec itself
refers back to (gzip 32 KiB; lz4 one block, at most 4 MiB; zstd its window, at most 128 MiB as in Java's and everyone's
streaming default, of which only what was decompressed takes memory; snappy one block, at most 22 times its input).
"""

import sys
import zlib
from collections.abc import Callable, Iterator
from struct import Struct
from typing import TYPE_CHECKING, Protocol

import cramjam
import lz4.frame

from ottla.errors import Code, KafkaError
from ottla.wire.compression import PIECE_BYTES_MAX, Codec, Data

if TYPE_CHECKING or sys.version_info < (3, 14):
    from backports import zstd
else:
    from compression import zstd

__all__ = ["COMPRESS", "pieces"]

INPUT_BYTES = 64 << 10  # given to a codec at once: it copies what it does not use yet
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable by version 1
_XERIAL_BLOCK_BYTES = 32 << 10
_SNAPPY_RATIO_MAX = 22  # its longest copy: 64 bytes from 3
_LENGTH = Struct(">i")
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT = 0x20
_ZSTD_OPTIONS: dict[int, int] = {zstd.DecompressionParameter.window_log_max: 27}
# Kafka's default levels; snappy has none. Kafka writes LZ4's default (9) with the fast compressor, not at height 9.
_GZIP_DEFAULT, _LZ4_DEFAULT, _ZSTD_DEFAULT = 6, 9, 3


class Stream(Protocol):
    """One frame (gzip: member) of a codec, as Python's own decompressors are."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: Data, max_length: int) -> bytes: ...


def pieces(codec: int, data: Data) -> Iterator[bytes]:
    """The decompressed data in pieces, mostly of PIECE_BYTES_MAX and some of them empty. INVALID_RECORD when the data
    is no stream of the codec, which may show after some pieces."""
    if codec not in _PIECES:
        raise KafkaError(Code.unsupported_compression_type, f"Unknown compression type id: {codec}")
    try:
        yield from _PIECES[codec](data)
    except (cramjam.DecompressionError, zlib.error, zstd.ZstdError, RuntimeError) as error:  # lz4's is plain
        raise _unreadable(f"records cannot be decompressed with {Codec(codec).label}: {error}") from None


def _unreadable(message: str) -> KafkaError:
    return KafkaError(Code.invalid_record, message)


def _framed(data: Data, begin: Callable[[], Stream], *, label: str, frames_max: int | None = None) -> Iterator[bytes]:
    """One frame after the other."""
    view = memoryview(data)
    position = frames = 0
    given: Data = b""
    stream: Stream | None = None
    while True:
        if not given and (stream is None or stream.needs_input):
            if position >= len(view):
                break
            given = view[position : position + INPUT_BYTES]
            position += len(given)
        if stream is None:
            if frames == frames_max:
                raise _unreadable(f"{len(given) + len(view) - position} bytes follow the {label} stream of a batch")
            stream = begin()
            frames += 1
        piece = stream.decompress(given, PIECE_BYTES_MAX)
        given = b""
        if stream.eof:
            given, stream = stream.unused_data or b"", None
        yield piece
    if stream is not None or not frames:
        raise _unreadable(f"records end in the middle of a {label} stream")


class _Gunzip:
    """zlib's stream with the interface of the others."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: Data, max_length: int) -> bytes:
        piece = self._stream.decompress(data or self._stream.unconsumed_tail, max_length)
        self.needs_input = len(piece) < max_length and not self._stream.unconsumed_tail
        return piece


class _Unlz4:
    """A frame that Java's reader takes: blocks that do not refer back to each other, and no frame of another kind."""

    def __init__(self) -> None:
        self._stream = lz4.frame.LZ4FrameDecompressor()
        self._head = b""

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def needs_input(self) -> bool:
        return bool(self._stream.needs_input)

    @property
    def unused_data(self) -> bytes | None:
        unused: bytes | None = self._stream.unused_data
        return unused

    def decompress(self, data: Data, max_length: int) -> bytes:
        if data and len(self._head) <= len(_LZ4_MAGIC):
            self._head += bytes(data[: len(_LZ4_MAGIC) + 1 - len(self._head)])
            if not _LZ4_MAGIC.startswith(self._head[:4]):
                raise _unreadable("records do not begin with the magic bytes of an lz4 frame")
            if len(self._head) > len(_LZ4_MAGIC) and not self._head[4] & _LZ4_INDEPENDENT:
                raise _unreadable("an lz4 frame has blocks that depend on each other, which Java's client cannot read")
        piece: bytes = self._stream.decompress(bytes(data), max_length)
        return piece


def _unsnappy(data: Data) -> Iterator[bytes]:
    """Java frames snappy in blocks (xerial); librdkafka writes one raw block. Both arrive."""
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        yield _unsnappy_block(view)
        return
    position = 0
    while position < len(view):
        if view[position : position + 8] == _XERIAL_MAGIC:  # streams may be concatenated
            position += len(_XERIAL_HEADER)
            yield b""
            continue
        start = position + 4
        if start > len(view):
            raise _unreadable("records end in the middle of a snappy frame")
        (length,) = _LENGTH.unpack_from(view, position)
        if length <= 0 or start + length > len(view):
            raise _unreadable(f"a snappy frame claims {length} bytes, {len(view) - start} remain")
        yield _unsnappy_block(view[start : start + length])
        position = start + length


def _unsnappy_block(block: memoryview) -> bytes:
    claimed = cramjam.snappy.decompress_raw_len(block)  # the codec would allocate it
    if claimed > _SNAPPY_RATIO_MAX * len(block):
        raise _unreadable(f"a snappy block of {len(block)} bytes claims to hold {claimed}")
    return bytes(cramjam.snappy.decompress_raw(block))


def _gzip(data: Data, level: int | None) -> bytes:
    return bytes(cramjam.gzip.compress(data, level=_GZIP_DEFAULT if level in (None, -1) else level))


def _snappy(data: Data, level: int | None) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _lz4(data: Data, level: int | None) -> bytes:
    """Independent blocks and no content checksum: Java's reader refuses anything else."""
    height = 0 if level in (None, _LZ4_DEFAULT) else level
    stream = cramjam.lz4.Compressor(level=height, content_checksum=False, block_linked=False)
    stream.compress(bytes(data))
    return bytes(stream.finish())


def _zstd(data: Data, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_DEFAULT if level is None else level))


COMPRESS: dict[Codec, Callable[[Data, int | None], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_PIECES: dict[int, Callable[[Data], Iterator[bytes]]] = {
    Codec.GZIP: lambda data: _framed(data, _Gunzip, label="gzip"),  # all members, as Java's GZIPInputStream reads them
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: lambda data: _framed(data, _Unlz4, label="lz4", frames_max=1),  # Java's reader stops behind the first
    Codec.ZSTD: lambda data: _framed(data, lambda: zstd.ZstdDecompressor(options=_ZSTD_OPTIONS), label="zstd"),
}
