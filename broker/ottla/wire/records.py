"""The records inside a batch (v2): read, written, checked. Pure.

Only compaction and internal topics decode records; what a client sends is checked by `framing`. Every length is
checked against the bytes that are there, so malformed input costs no more than its own size and raises
KafkaError(INVALID_RECORD), and so does a stream that cannot be decompressed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.wire import varints
from ottla.wire.assembly import assemble
from ottla.wire.batch import CONTROL_BIT, HEADER_BYTES, TRANSACTIONAL_BIT, Batch
from ottla.wire.compression import DECOMPRESSED_BYTES_MAX, Codec, compress, decompress

__all__ = ["Record", "Span", "encode", "encode_record", "headers", "iterate", "payload", "spans"]

take, rest = varints.take, varints.rest
LOG_APPEND_TIME = 1
NO_PRODUCER = (-1, -1, -1)


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


# Where a record lies in its payload: start, end, timestamp delta, offset delta, key start, key length, value start,
# value length. A negative length is null. A plain tuple: a named one costs as much as all the rest of finding it.
Span = tuple[int, int, int, int, int, int, int, int]


def payload(batch: Batch, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The records of a batch, decompressed."""
    return bytes(decompress(batch.codec, memoryview(batch.data)[HEADER_BYTES:], size_bytes_max))


def spans(records: bytes, count: int) -> Iterator[Span]:
    """The places of exactly `count` records that fill `records`."""
    if not 0 <= count <= len(records):
        raise _invalid(f"a batch claims {count} records in {len(records)} bytes")
    start = position = 0
    try:
        for _ in range(count):
            start = position
            # Each number is `varints.take` written out, for most have one byte and calls are most of the cost.
            size = records[position]
            position += 1
            if size >= 0x80:
                size, position = rest(records, position, size)
            end = position + (size >> 1 ^ -(size & 1))
            timestamp = records[position + 1]  # behind one byte of attributes, unused
            position += 2
            if timestamp >= 0x80:
                timestamp, position = rest(records, position, timestamp)
            offset = records[position]
            position += 1
            if offset >= 0x80:
                offset, position = rest(records, position, offset)
            key_length = records[position]
            key_start = position + 1
            if key_length >= 0x80:
                key_length, key_start = rest(records, key_start, key_length)
            key_length = key_length >> 1 ^ -(key_length & 1)
            position = key_start + key_length if key_length > 0 else key_start
            value_length = records[position]
            value_start = position + 1
            if value_length >= 0x80:
                value_length, value_start = rest(records, value_start, value_length)
            value_length = value_length >> 1 ^ -(value_length & 1)
            position = value_start + value_length if value_length > 0 else value_start
            if position >= end or end > len(records):  # at least the number of headers must follow
                raise _invalid(f"a record at {start} does not hold its key and value")
            timestamp = timestamp >> 1 ^ -(timestamp & 1)
            offset = offset >> 1 ^ -(offset & 1)
            yield start, end, timestamp, offset, key_start, key_length, value_start, value_length
            position = end
    except IndexError:
        raise _invalid(f"a record at {start} runs over the end of its batch") from None
    if position != len(records):
        raise _invalid(f"{len(records) - position} bytes follow the {count} records of a batch")


def iterate(batch: Batch, *, size_bytes_max: int = DECOMPRESSED_BYTES_MAX) -> Iterator[Record]:
    records = payload(batch, size_bytes_max=size_bytes_max)
    append_time = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None
    for _, end, timestamp, offset, key_start, key_length, value_start, value_length in spans(records, batch.count):
        yield Record(
            batch.base_offset + offset,
            batch.base_timestamp + timestamp if append_time is None else append_time,
            _bytes(records, key_start, key_length),
            _bytes(records, value_start, value_length),
            headers(records, value_start + max(value_length, 0), end),
        )


def _bytes(records: bytes, start: int, length: int) -> bytes | None:
    return records[start : start + length] if length >= 0 else None


def headers(records: bytes, position: int, end: int) -> Sequence[tuple[str, bytes | None]]:
    """The headers of a record, which lie between its value and its end."""
    if records[position] == 0 and position + 1 == end:
        return ()
    found = []
    try:
        count, position = take(records, position)
        if not 0 <= count <= end - position:
            raise _invalid(f"a record claims {count} headers in {end - position} bytes")
        for _ in range(count):
            key_length, key_start = take(records, position)
            if key_length < 0:
                raise _invalid("a header has no name")
            value_length, value_start = take(records, key_start + key_length)
            position = value_start + max(value_length, 0)
            if position > end:
                raise _invalid("a header runs over the end of its record")
            name = records[key_start : key_start + key_length].decode("utf-8", "replace")
            found.append((name, _bytes(records, value_start, value_length)))
    except IndexError:
        raise _invalid("a header runs over the end of its batch") from None
    if position != end:
        raise _invalid(f"{end - position} bytes follow the headers of a record")
    return found


def encode_record(out: bytearray, record: Record, *, offset_delta: int, timestamp_delta: int) -> None:
    put = varints.put
    body = bytearray(1)  # attributes, unused
    put(body, timestamp_delta)
    put(body, offset_delta)
    _put_bytes(body, record.key)
    _put_bytes(body, record.value)
    put(body, len(record.headers))
    for name, value in record.headers:
        _put_bytes(body, name.encode())
        _put_bytes(body, value)
    put(out, len(body))
    out += body


def encode(
    records: Sequence[Record],
    *,
    leader_epoch: int = -1,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer: tuple[int, int, int] = NO_PRODUCER,
    is_transactional: bool = False,
    is_control: bool = False,
) -> bytes:
    """A batch of at least one record, in the order of their offsets. `producer` is id, epoch and base sequence."""
    base_offset, base_timestamp = records[0].offset, records[0].timestamp
    out = bytearray()
    for record in records:
        encode_record(
            out, record, offset_delta=record.offset - base_offset, timestamp_delta=record.timestamp - base_timestamp
        )
    producer_id, producer_epoch, base_sequence = producer
    return assemble(
        compress(codec, out, level),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=codec | is_transactional * TRANSACTIONAL_BIT | is_control * CONTROL_BIT,
        last_offset_delta=records[-1].offset - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )


def _put_bytes(out: bytearray, value: bytes | None) -> None:
    varints.put(out, -1 if value is None else len(value))
    out += value or b""


def _invalid(message: str) -> KafkaError:
    return KafkaError(Code.invalid_record, message)
