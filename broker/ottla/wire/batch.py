"""Record batches of magic 2: a 61-byte header that is read and stamped, and a body that stays closed. Pure.

Layout (big-endian): base offset 8 · length 4 · leader epoch 4 · magic 1 · CRC 4 | attributes 2 · last offset delta 4 ·
base timestamp 8 · max timestamp 8 · producer id 8 · producer epoch 2 · base sequence 4 · count 4 · records. The CRC-32C
covers what is right of the bar, so a leader assigns offset and epoch without touching it.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Any

from crc32c import crc32c

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer

__all__ = [
    "APPEND_TIME_BIT",
    "CHECKED",
    "CODEC_MASK",
    "CONTROL_BIT",
    "HEADER",
    "HEADER_BYTES",
    "MAGIC_AND_CRC",
    "OVERHEAD_BYTES",
    "SEQUENCE_MAX",
    "STAMP",
    "STAMP_BYTES",
    "TRANSACTIONAL_BIT",
    "Batch",
    "check",
    "crc_matches",
    "increment_sequence",
    "iterate",
    "parse",
    "sole",
    "stamp_append_time",
]

HEADER = Struct(">qiibIhiqqqhii")
STAMP = Struct(">qii")
CHECKED = Struct(">hiqqqhii")  # what the CRC covers of the header
MAGIC_AND_CRC = Struct(">bI")

HEADER_BYTES = HEADER.size
OVERHEAD_BYTES = 12  # base offset and length: what `length` does not count
STAMP_BYTES = STAMP.size
MAGIC_END = 17  # with fewer bytes there is no batch at all
CHECKED_FROM = 21
LENGTH_MIN = 14  # Kafka's smallest length of any magic; below it nothing can be found in the bytes

CODEC_MASK, APPEND_TIME_BIT, TRANSACTIONAL_BIT, CONTROL_BIT = 0x07, 0x08, 0x10, 0x20
CODEC_ZSTD = 4
SEQUENCE_MAX = 2**31 - 1


class Batch:
    """One batch: its header's fields, and `data`, the whole batch as it came."""

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "count",
        "crc",
        "data",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, data: Buffer, fields: tuple[Any, ...]) -> None:
        self.data = data
        self.base_offset: int
        self.length: int
        self.leader_epoch: int
        self.magic: int
        self.crc: int
        self.attributes: int
        self.last_offset_delta: int
        self.base_timestamp: int
        self.max_timestamp: int
        self.producer_id: int
        self.producer_epoch: int
        self.base_sequence: int
        self.count: int
        (
            self.base_offset,
            self.length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        ) = fields

    @property
    def size(self) -> int:
        return self.length + OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        return -1 if self.base_sequence < 0 else increment_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def timestamp_type(self) -> int:
        """0 CreateTime, 1 LogAppendTime."""
        return self.attributes >> 3 & 1

    def __repr__(self) -> str:
        return f"Batch(offsets {self.base_offset}..{self.last_offset}, {self.size} bytes, epoch {self.leader_epoch})"


def increment_sequence(sequence: int, by: int) -> int:
    """Sequences count 0 … 2^31-1 and start over."""
    return (sequence + by) & SEQUENCE_MAX


def parse(view: Buffer, position: int = 0) -> Batch:
    """The whole batch that begins at `position`; CORRUPT_MESSAGE when the bytes do not hold one."""
    remaining = len(view) - position
    if remaining < HEADER_BYTES:
        raise KafkaError(Code.corrupt_message, f"{remaining} bytes are too few for a record batch header")
    fields = HEADER.unpack_from(view, position)
    size = fields[1] + OVERHEAD_BYTES
    if not HEADER_BYTES <= size <= remaining:
        raise KafkaError(Code.corrupt_message, f"Record batch claims {size} bytes where {remaining} are present")
    return Batch(view if size == len(view) else memoryview(view)[position : position + size], fields)


def iterate(view: Buffer) -> Iterator[Batch]:
    """The batches one after the other; CORRUPT_MESSAGE when the last one is cut off."""
    position, end = 0, len(view)
    while position < end:
        batch = parse(view, position)
        yield batch
        position += batch.size


def sole(records: Buffer | None, *, version: int) -> Batch:
    """The one batch that a produce request of this version may hold for a partition, not yet checked."""
    if version >= 7 and records is not None and len(records) >= HEADER_BYTES:
        fields = HEADER.unpack_from(records)
        if fields[1] + OVERHEAD_BYTES == len(records) and fields[3] == 2:
            return Batch(records, fields)  # as nearly always
    return _sole_of(records, version)


def _sole_of(records: Buffer | None, version: int) -> Batch:
    if records is None or len(records) < MAGIC_END or _size_at(records, 0) > len(records):
        raise KafkaError(
            Code.invalid_record,
            f"Produce requests with version {version} must have at least one record batch per partition",
        )
    if 0 <= records[MAGIC_END - 1] < 2:
        raise KafkaError(
            Code.invalid_record,
            f"Produce requests with version {version} are only allowed to contain record batches with magic version 2",
        )
    batch = parse(records)
    if version < 7 and batch.codec == CODEC_ZSTD:
        raise KafkaError(
            Code.unsupported_compression_type,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    rest = len(records) - batch.size
    if rest >= MAGIC_END and _size_at(records, batch.size) <= rest:
        raise KafkaError(
            Code.invalid_record,
            f"Produce requests with version {version} are only allowed to contain exactly one record batch per "
            "partition",
        )
    return batch


def _size_at(records: Buffer, position: int) -> int:
    length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
    if length < LENGTH_MIN:
        raise KafkaError(Code.corrupt_message, f"Record size {length} is less than the minimum record overhead")
    return length + OVERHEAD_BYTES


def crc_matches(batch: Batch) -> bool:
    return bool(crc32c(memoryview(batch.data)[CHECKED_FROM:]) == batch.crc)


def check(batch: Batch) -> None:
    """Refuse what Kafka refuses of a client's batch by its header and CRC."""
    attributes = batch.attributes
    if not (
        batch.magic == 2
        and batch.base_offset == 0
        and 0 < batch.count == batch.last_offset_delta + 1
        and not attributes & CONTROL_BIT
        and attributes & CODEC_MASK <= CODEC_ZSTD
        and (batch.base_sequence >= 0 or batch.producer_id < 0)
        and crc_matches(batch)
    ):
        raise _flaw(batch)


def _flaw(batch: Batch) -> KafkaError:
    """The first that Kafka would find."""
    if batch.magic != 2:
        return KafkaError(Code.corrupt_message, f"Invalid magic found in record: {batch.magic}")
    if batch.base_offset != 0:
        return _invalid(f"The baseOffset of the record batch should be 0, but it is {batch.base_offset}")
    if not crc_matches(batch):
        return KafkaError(Code.corrupt_message, f"Record is corrupt (stored crc = {batch.crc})")
    if batch.codec > CODEC_ZSTD:
        return KafkaError(Code.unsupported_compression_type, f"Unknown compression type id: {batch.codec}")
    if batch.last_offset_delta < 0:
        return _invalid(f"Batch has an invalid offset range: [0, {batch.last_offset_delta}]")
    if batch.count <= 0:
        return _invalid(f"Invalid reported count for record batch: {batch.count}")
    if batch.count != batch.last_offset_delta + 1:
        return _invalid(
            f"Inconsistent batch offset range [0, {batch.last_offset_delta}] and count of records {batch.count}"
        )
    if batch.is_control:
        return _invalid("Clients are not allowed to write control records")
    return _invalid(
        f"Invalid sequence number {batch.base_sequence} in record batch with producerId {batch.producer_id}"
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(Code.invalid_record, message)


def stamp_append_time(batch: Batch, *, base_offset: int, leader_epoch: int, now_ms: int) -> bytes:
    """A new header, as LogAppendTime at `now_ms`; bytes 61 onwards follow unchanged."""
    checked = CHECKED.pack(
        batch.attributes | APPEND_TIME_BIT,
        batch.last_offset_delta,
        batch.base_timestamp,
        now_ms,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.count,
    )
    crc = crc32c(memoryview(batch.data)[HEADER_BYTES:], crc32c(checked))
    return STAMP.pack(base_offset, batch.length, leader_epoch) + MAGIC_AND_CRC.pack(batch.magic, crc) + checked
