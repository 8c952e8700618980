"""Record batches made byte by byte, so that each field can be wrong. Magic 2, uncompressed."""

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
        records = b"".join(_record(offset, value) for offset, value in enumerate(self.values))
        count, last = len(self.values) + self.count_error, len(self.values) - 1
        producer = (self.producer_id, self.producer_epoch, self.base_sequence)
        covered = AFTER_CRC.pack(0, last, self.timestamp_ms, self.timestamp_ms, *producer, count) + records
        length = 4 + 1 + 4 + len(covered) + self.length_error
        return HEAD.pack(0, length, -1, self.magic, crc32c.crc32c(covered) ^ self.crc_error) + covered


def _record(offset_delta: int, value: bytes) -> bytes:
    body = b"\0" + b"\0" + _varint(offset_delta) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    zigzag = (number << 1) ^ (number >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)
