"""Validates a client's batch, and recompresses it with its topic's codec. Runs in the worker process.

Validation streams, so its memory is bounded whatever a body decompresses to; bytes and CPU time are limited.
Recompression holds all records in memory.
"""

import time
from collections.abc import Callable, Iterable, Iterator

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer
from ottla.wire.assembly import rebuilt
from ottla.wire.batch import Batch, parse
from ottla.wire.compression import DECOMPRESSED_BYTES_MAX, too_large
from ottla.wire.record_checks import body_pieces, check_records

__all__ = ["CHECKED_BYTES_MAX", "OPENING_CPU_S_MAX", "opened", "recompress"]

CHECKED_BYTES_MAX = 1 << 30  # limit of a decompressed batch; a batch of message.max.bytes full of zeros stays below
OPENING_CPU_S_MAX = 2.0  # for one batch


def opened(
    data: Buffer,
    codec: int,
    level: int | None,
    compacted_partition: str | None,
    recompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> bytes | None:
    """The batch in another codec; None if it can be stored unchanged. KafkaError if it is invalid."""
    batch = parse(data)
    if batch.codec != codec:
        return recompress(data, codec, level, recompressed_bytes_max, compacted_partition=compacted_partition)
    # Compaction holds a whole batch in memory.
    bytes_max = CHECKED_BYTES_MAX if compacted_partition is None else DECOMPRESSED_BYTES_MAX
    check_records(batch, _limited(body_pieces(batch), bytes_max), compacted_partition=compacted_partition)
    return None


def recompress(
    data: Buffer,
    codec: int,
    level: int | None = None,
    size_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    *,
    compacted_partition: str | None = None,
) -> bytes:
    """The same records, offsets, timestamps and sequences in `codec`, with a new CRC.

    Control batches are unchanged, as in Kafka. Malformed records are refused: the new CRC would hide the damage.
    """
    batch = parse(data)
    if batch.is_control or batch.codec == codec:
        return bytes(data)
    payload: list[bytes] = []
    check_records(batch, _kept(batch, size_bytes_max, payload), compacted_partition=compacted_partition)
    return rebuilt(batch, b"".join(payload), count=batch.count, codec=codec, level=level)


def _kept(batch: Batch, bytes_max: int, payload: list[bytes]) -> Iterator[bytes]:
    for piece in _limited(body_pieces(batch), bytes_max):
        payload.append(piece)
        yield piece


def _limited(
    pieces: Iterable[bytes], bytes_max: int, spent_s: Callable[[], float] = time.process_time
) -> Iterator[bytes]:
    left = bytes_max
    deadline_s = spent_s() + OPENING_CPU_S_MAX
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            raise too_large(bytes_max)
        if spent_s() > deadline_s:
            raise KafkaError(
                Code.message_too_large,
                f"records take longer than {OPENING_CPU_S_MAX} s to decompress and check; send smaller batches",
            )
        yield piece
