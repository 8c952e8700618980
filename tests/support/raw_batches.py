"""Record batches made byte by byte, so that each field can be wrong. Magic 2."""

import struct
import time
from dataclasses import dataclass, field

import crc32c

# Length and everything after it, up to the record count; see Kafka's DefaultRecordBatch.
AFTER_CRC = struct.Struct(">hiqqqhii")
HEAD = struct.Struct(">qiibI")


@dataclass(frozen=True)
class RawBatch:
    values: tuple[bytes, ...] = (b"value",)
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    magic: int = 2
    crc_error: int = 0
    length_error: int = 0
    count_error: int = 0
    timestamp_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    def encode(self) -> bytes:
        records = b"".join(raw_record(offset, value) for offset, value in enumerate(self.values))
        count, last = len(self.values) + self.count_error, len(self.values) - 1
        producer = (self.producer_id, self.producer_epoch, self.base_sequence)
        covered = AFTER_CRC.pack(0, last, self.timestamp_ms, self.timestamp_ms, *producer, count) + records
        length = 4 + 1 + 4 + len(covered) + self.length_error
        return HEAD.pack(0, length, -1, self.magic, crc32c.crc32c(covered) ^ self.crc_error) + covered


def enclosed(
    body: bytes, *, count: int, attributes: int = 0, last_offset_delta: int | None = None, times: int = 0
) -> bytes:
    """A batch around any body, with a header and CRC that are right as far as these arguments are.

    `times`: by how many milliseconds its last record is newer than the first.
    """
    now_ms = int(time.time() * 1000)
    last = count - 1 if last_offset_delta is None else last_offset_delta
    covered = AFTER_CRC.pack(attributes, last, now_ms - times, now_ms, -1, -1, -1, count) + body
    return HEAD.pack(0, 9 + len(covered), -1, 2, crc32c.crc32c(covered)) + covered


def raw_record(offset_delta: int, value: bytes | None, *, key: bytes | None = None, tail: bytes = b"\0") -> bytes:
    """`tail` is the count of headers and the headers."""
    return sized(b"\0\0" + varint(offset_delta) + sized_or_null(key) + sized_or_null(value) + tail)


def later_record(offset_delta: int, milliseconds: int) -> bytes:
    """Without key and value."""
    return sized(b"\0" + varint(milliseconds) + varint(offset_delta) + varint(-1) * 2 + b"\0")


def sized(body: bytes) -> bytes:
    return varint(len(body)) + body


def sized_or_null(data: bytes | None) -> bytes:
    return varint(-1) if data is None else sized(data)


def varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)
