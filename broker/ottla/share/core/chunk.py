"""Batches as read from the log, and which of them are for consumers. Pure."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter

from ottla.ports import Buffer
from ottla.share.core.partition import Acquired, Found
from ottla.storage.core.slice import Slice
from ottla.wire.batch import Batch, iterate
from ottla.wire.records import iterate as iterate_records

__all__ = ["Chunk"]

ABORT = 0
LAST = attrgetter("last")


class Chunk:
    """One read from offset `begin` on. Its batches are parsed as far as they are wanted: a read may have very many.

    `_found` are those, `_ends` their end positions in `data`.
    """

    __slots__ = ("_aborted", "_ends", "_found", "begin", "data")

    def __init__(self, begin: int, read: Slice, *, read_committed: bool) -> None:
        self.begin = begin
        self.data = read.data
        self._found: list[Found] = []
        self._ends: list[int] = []
        self._aborted: Sequence[tuple[int, int]] = read.aborted if read_committed else ()

    def batches(self, batches_max: int) -> Iterator[Found]:
        """The first of its batches. To be called once."""
        aborted, position = Aborted(self._aborted), 0
        for batch in islice(iterate(self.data), batches_max):
            position += batch.size
            hidden = aborted.is_aborted(batch) or batch.is_control
            found = Found(batch.base_offset, batch.last_offset, not hidden)
            self._found.append(found)
            self._ends.append(position)
            yield found

    @property
    def parsed(self) -> int:
        """How many of its batches were looked at."""
        return len(self._found)

    def __len__(self) -> int:
        return len(self.data)

    def holding(self, acquired: Sequence[Acquired]) -> Buffer:
        """The unchanged batches, from the first to the last with acquired records."""
        if not acquired:
            return b""
        begin = bisect_left(self._found, acquired[0].first, key=LAST)
        end = bisect_left(self._found, acquired[-1].last, key=LAST)
        start = self._ends[begin - 1] if begin else 0
        return memoryview(self.data)[start : self._ends[end]]


class Aborted:
    """Tracks aborted transactions over batches in order. `transactions` are (producer id, first offset)."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self._coming = sorted(transactions, key=lambda one: one[1], reverse=True)  # the next one is at the end
        self._open: set[int] = set()

    def is_aborted(self, batch: Batch) -> bool:
        while self._coming and self._coming[-1][1] <= batch.last_offset:
            self._open.add(self._coming.pop()[0])
        if batch.is_control and batch.producer_id in self._open and _ends_in_abort(batch):
            self._open.discard(batch.producer_id)
        return batch.is_transactional and batch.producer_id in self._open


def _ends_in_abort(marker: Batch) -> bool:
    record = next(iterate_records(marker), None) if marker.count else None
    return record is not None and record.key is not None and int.from_bytes(record.key[2:4], "big") == ABORT
