"""Walks over the batches of a file from a known position. Blocking; any thread."""

from collections.abc import Iterator
from typing import Protocol

from ottla.ports import Buffer
from ottla.wire.batch import CONTROL_BIT, HEADER, HEADER_BYTES, OVERHEAD_BYTES, Batch

__all__ = ["Reader", "scan"]

HEADERS_BYTES = 1 << 16
WHOLE_BYTES = 1 << 20


class Reader(Protocol):
    """What a scan needs of a File."""

    def read(self, position: int, size: int) -> Buffer: ...


def scan(file: Reader, *, start: int, end: int, whole: bool = False) -> Iterator[tuple[int, Batch]]:
    """(position, batch) for each batch between two positions; stops at the first incomplete batch.

    Unless `whole`, `batch.data` may end after the header (never for a control batch). Only lengths are verified, and no
    single read is larger than a batch inside the file needs.
    """
    chunk: Buffer = b""
    chunk_at = position = start
    while position + HEADER_BYTES <= end:
        at = position - chunk_at
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_at, at = _read(file, position, end, WHOLE_BYTES if whole else HEADERS_BYTES), position, 0
            if len(chunk) < HEADER_BYTES:
                return
        fields = HEADER.unpack_from(chunk, at)
        size = fields[1] + OVERHEAD_BYTES
        if size < HEADER_BYTES or position + size > end:
            return
        if at + size > len(chunk) and (whole or fields[5] & CONTROL_BIT):
            chunk, chunk_at, at = _read(file, position, end, max(size, WHOLE_BYTES)), position, 0
            if len(chunk) < size:
                return
        yield position, Batch(memoryview(chunk)[at : at + size], fields)
        position += size


def _read(file: Reader, position: int, end: int, size: int) -> Buffer:
    return file.read(position, min(size, end - position))
