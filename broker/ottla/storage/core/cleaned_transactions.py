"""Transactions in compaction: which records were aborted, and which markers are no longer needed. Pure.

A marker may be dropped once no record of its transaction is left before it; an aborted transaction stays in the index
of the cleaned segment as long as its marker does.
"""

from collections.abc import Iterable

from ottla.storage.core.aborted import AbortedTransaction
from ottla.wire.batch import Batch
from ottla.wire.records import iterate

__all__ = ["CleanedTransactions"]

ABORT, COMMIT = 0, 1


class CleanedTransactions:
    """Takes every batch of a log from its start, in order. It is small, and passed from one group's job to the next."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda one: one.first_offset, reverse=True)  # the next one is at the end
        self._aborted: dict[int, AbortedTransaction] = {}
        self._with_records: set[int] = set()  # producers with a record in their open transaction
        self.retained: list[AbortedTransaction] = []  # those whose marker is kept, since the last `take_retained`

    def is_discardable(self, batch: Batch) -> bool:
        """An aborted record, or a marker whose transaction has no records left."""
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            begun = self._coming.pop()
            self._aborted.setdefault(begun.producer_id, begun)
        if batch.is_control:
            return self._ends(batch)
        if not batch.is_transactional:
            return False
        self._with_records.add(batch.producer_id)
        return batch.producer_id in self._aborted

    def _ends(self, marker: Batch) -> bool:
        kind = _kind(marker)
        if kind is None:  # emptied by an earlier cleaning
            return True
        if kind not in (ABORT, COMMIT):
            return False
        had_records = marker.producer_id in self._with_records
        self._with_records.discard(marker.producer_id)
        if kind == ABORT and (aborted := self._aborted.pop(marker.producer_id, None)) and had_records:
            self.retained.append(aborted)
        return not had_records

    def take_retained(self) -> list[AbortedTransaction]:
        retained, self.retained = self.retained, []
        return retained


def _kind(marker: Batch) -> int | None:
    record = next(iterate(marker), None) if marker.count else None
    return int.from_bytes(record.key[2:4], "big", signed=True) if record and record.key else None
