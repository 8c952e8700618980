"""Offsets and timestamps of a batch's records, read from a stream of pieces. Pure.

A few kilobytes may decompress to hundreds of megabytes. Nothing is held here but one piece and the head of a record
that the piece before cut in two; keys, values and headers are passed over.
"""

from collections.abc import Iterable, Iterator

from ottla.errors import Code, KafkaError
from ottla.wire import varints

__all__ = ["deltas"]

rest = varints.rest
HEAD_BYTES_MAX = 5 + 1 + 10 + 5  # length, attributes, timestamp delta, offset delta


def deltas(pieces: Iterable[bytes], count: int) -> Iterator[tuple[int, int]]:
    """Of every record its deltas of offset and timestamp. INVALID_RECORD when there are fewer than `count`."""
    cut = b""  # the beginning of a record, at the end of what came so far
    skip = found = 0
    for piece in pieces:
        if skip >= len(piece):
            skip -= len(piece)
            continue
        data, position = (cut + piece, 0) if cut else (piece, skip)
        last = len(data) - HEAD_BYTES_MAX
        while position <= last and found < count:
            offset, timestamp, position = _head(data, position)
            found += 1
            yield offset, timestamp
        if found == count:
            return
        skip = max(position - len(data), 0)
        cut = data[position:]
    try:
        position = 0
        while found < count:
            offset, timestamp, position = _head(cut, position)
            if position > len(cut):
                raise IndexError
            found += 1
            yield offset, timestamp
    except IndexError:
        raise KafkaError(Code.invalid_record, f"a batch claims {count} records and holds {found}") from None


def _head(data: bytes, position: int) -> tuple[int, int, int]:
    """A record's deltas of offset and timestamp, and the position behind the record, which may not be there yet."""
    size = data[position]
    position += 1
    if size >= 0x80:
        size, position = rest(data, position, size)
    end = position + (size >> 1 ^ -(size & 1))
    timestamp = data[position + 1]  # behind one byte of attributes, unused
    position += 2
    if timestamp >= 0x80:
        timestamp, position = rest(data, position, timestamp)
    offset = data[position]
    position += 1
    if offset >= 0x80:
        offset, position = rest(data, position, offset)
    if position > end:
        raise KafkaError(Code.invalid_record, "a record is shorter than its numbers")
    return offset >> 1 ^ -(offset & 1), timestamp >> 1 ^ -(timestamp & 1), end
