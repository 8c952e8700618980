"""Which codec a batch uses, and its records packed and unpacked. Pure.

Contract: `decompress` never gives, nor allocates, more than `size_bytes_max`, whatever the bytes claim; input that is
no stream of its codec raises KafkaError(CORRUPT_MESSAGE).

The codecs themselves are loaded when a batch is first opened or packed: brokers pass batches on as they are, and many
never need those 2 MB.
"""

from enum import IntEnum

__all__ = ["DECOMPRESSED_BYTES_MAX", "Codec", "Data", "compress", "decompress"]

# What one batch may unpack to. Kafka streams and has no such limit; a fetch of the largest batches stays far below it.
DECOMPRESSED_BYTES_MAX = 256 << 20

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


def decompress(codec: int, data: Data, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Data:
    if codec == Codec.NONE:
        return data
    from ottla.wire import codecs

    return codecs.decompress(codec, data, size_bytes_max)
