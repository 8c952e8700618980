"""Which codec a batch uses, and its records packed and unpacked. Pure.

Contract: `pieces` streams, holding one piece at a time; `decompress` never gives, nor holds, more than
`size_bytes_max`, whatever the bytes claim. Input that is no stream of its codec raises KafkaError(INVALID_RECORD).

The codecs themselves are loaded when a batch is first opened or packed: brokers pass batches on as they are, and many
never need those 2 MB.
"""

from collections.abc import Iterable
from enum import IntEnum

from ottla.errors import Code, KafkaError

__all__ = [
    "DECOMPRESSED_BYTES_MAX",
    "PIECE_BYTES_MAX",
    "Codec",
    "Data",
    "compress",
    "decompress",
    "pieces",
    "too_large",
]

# What one batch may unpack to where it is held whole in memory: compaction, internal topics.
DECOMPRESSED_BYTES_MAX = 256 << 20
PIECE_BYTES_MAX = 256 << 10

Data = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """The name in `compression.type`."""
        return "uncompressed" if self is Codec.NONE else self.name.lower()


def compress(codec: int, data: Data, level: int | None = None) -> bytes:
    """`data` as Java's client would write it. `level` is Kafka's `compression.<codec>.level`."""
    if codec == Codec.NONE:
        return bytes(data)
    from ottla.wire import codecs

    return codecs.COMPRESS[Codec(codec)](data, level)


def pieces(codec: int, data: Data) -> Iterable[bytes]:
    """The decompressed data, piece by piece."""
    if codec == Codec.NONE:
        return (bytes(data),)
    from ottla.wire import codecs

    return codecs.pieces(codec, data)


def decompress(codec: int, data: Data, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Data:
    if codec == Codec.NONE:
        return data
    found: list[bytes] = []
    bytes_left = size_bytes_max
    for piece in pieces(codec, data):
        bytes_left -= len(piece)
        if bytes_left < 0:
            raise too_large(size_bytes_max)
        if piece:
            found.append(piece)
    return found[0] if len(found) == 1 else b"".join(found)


def too_large(size_bytes_max: int) -> KafkaError:
    """Clients answer this code by splitting the batch."""
    return KafkaError(
        Code.message_too_large, f"records decompress to more than {size_bytes_max} bytes; send smaller batches"
    )
