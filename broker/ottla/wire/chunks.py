"""The parts of an answer, joined into fewer: whoever counts and sends them handles each one. Pure."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from ottla.ports import Part

__all__ = ["Chunks"]

CHUNK_BYTES = 64 * 1024
CHUNK_PARTS_MAX = 2_000
LARGE_PART_BYTES = 16 * 1024

P = TypeVar("P", bytes, Part)


class Chunks(Generic[P]):
    """Small parts are joined. Large ones are shared with whoever has them too, and what lies in files stays there."""

    __slots__ = ("_chunks", "_small", "_small_bytes")

    def __init__(self) -> None:
        self._chunks: list[P] = []
        self._small: list[bytes] = []
        self._small_bytes = 0

    def add(self, parts: Iterable[P]) -> int:
        """How many bytes these are."""
        size = 0
        for part in parts:
            size += len(part)
            if isinstance(part, bytes) and len(part) < LARGE_PART_BYTES:
                self._small.append(part)
                self._small_bytes += len(part)
                if self._small_bytes >= CHUNK_BYTES or len(self._small) >= CHUNK_PARTS_MAX:
                    self._join()
            else:
                self._join()
                self._chunks.append(part)
        return size

    def finish(self) -> list[P]:
        self._join()
        return self._chunks

    def _join(self) -> None:
        if self._small:
            self._chunks.append(b"".join(self._small))
            self._small.clear()
            self._small_bytes = 0
