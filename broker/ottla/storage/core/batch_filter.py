"""What compaction keeps of one batch. Pure.

A record is kept if no later record of its key exists. A tombstone is dropped when its batch's delete horizon has
passed; the first cleaning that sees one writes that horizon into the batch (KIP-534). The same applies to a
transaction's marker once its transaction has no records left. Offsets never change: a rewritten batch keeps its offset
range and sequences.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer
from ottla.storage.core.cleaned_transactions import CleanedTransactions
from ottla.storage.core.offset_map import OffsetMap
from ottla.wire import varints
from ottla.wire.assembly import DELETE_HORIZON_BIT, emptied, rebuilt
from ottla.wire.batch import Batch, crc_matches
from ottla.wire.records import LOG_APPEND_TIME, Span, payload, spans

__all__ = ["BatchFilter", "LastWritten"]

TIMESTAMP_DELTA, VALUE_LENGTH = 2, 7  # in a span


@dataclass(frozen=True, slots=True)
class LastWritten:
    """The data of an active producer that compaction must keep: its last batch, or the marker with its epoch."""

    last_data_offset: int | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFilter:
    """`upto` is the first offset outside this cleaning; the batch before it is kept for its last offset."""

    map: OffsetMap
    now_ms: int
    delete_retention_ms: int
    upto: int
    producers: Mapping[int, LastWritten]

    def apply(self, batch: Batch, transactions: CleanedTransactions) -> Buffer | None:
        """The batch to write; None when it is dropped."""
        discardable = transactions.is_discardable(batch)
        horizon_ms = batch.base_timestamp if batch.attributes & DELETE_HORIZON_BIT else None
        horizon_passed = horizon_ms is not None and horizon_ms <= self.now_ms
        kept: Buffer | None = None
        if batch.is_control:
            if batch.count and not (discardable and horizon_passed):
                kept = self._marker(batch, wants_horizon=discardable and horizon_ms is None)
        elif not discardable and batch.count:
            kept = self._data(batch, horizon_ms=horizon_ms, tombstones_stay=not horizon_passed)
        if kept is None and self._is_needed(batch):
            return emptied(batch)
        return kept

    def _is_needed(self, batch: Batch) -> bool:
        if batch.last_offset + 1 == self.upto:
            return True
        last = self.producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.epoch

    def _marker(self, batch: Batch, *, wants_horizon: bool) -> Buffer:
        if not wants_horizon:
            return batch.data
        records = payload(batch)
        return self._rewritten(batch, records, list(spans(records, batch.count)), wants_horizon=True)

    def _data(self, batch: Batch, *, horizon_ms: int | None, tombstones_stay: bool) -> Buffer | None:
        records = payload(batch)
        stay = self._staying(batch, records, tombstones_stay=tombstones_stay)
        if not stay:
            return None
        wants_horizon = horizon_ms is None and any(span[VALUE_LENGTH] < 0 for span in stay)
        if len(stay) == batch.count and not wants_horizon:
            return batch.data
        return self._rewritten(batch, records, stay, wants_horizon=wants_horizon)

    def _staying(self, batch: Batch, records: bytes, *, tombstones_stay: bool) -> list[Span]:
        superseded, latest, base = self.map.supersedes, self.map.latest, batch.base_offset
        stay: list[Span] = []
        for span in spans(records, batch.count):
            _, _, _, delta, key_start, key_length, _, value_length = span
            offset = base + delta
            if offset > latest or (
                key_length >= 0
                and (value_length >= 0 or tombstones_stay)
                and not superseded(records[key_start : key_start + key_length], offset)
            ):
                stay.append(span)
        return stay

    def _rewritten(self, batch: Batch, records: bytes, stay: list[Span], *, wants_horizon: bool) -> bytes:
        if not crc_matches(batch):  # a new CRC would hide the corruption
            raise KafkaError(Code.corrupt_message, f"the batch at offset {batch.base_offset} has a wrong CRC")
        if wants_horizon:
            horizon_ms = self.now_ms + self.delete_retention_ms
            kept = b"".join(_retimed(records, span, batch.base_timestamp - horizon_ms) for span in stay)
        else:
            horizon_ms = None
            kept = b"".join(records[span[0] : span[1]] for span in stay)
        return rebuilt(
            batch,
            kept,
            count=len(stay),
            codec=batch.codec,
            delete_horizon_ms=horizon_ms,
            max_timestamp=_max_timestamp(batch, stay),
        )


def _max_timestamp(batch: Batch, stay: list[Span]) -> int:
    if batch.timestamp_type == LOG_APPEND_TIME:
        return batch.max_timestamp
    return batch.base_timestamp + max(span[TIMESTAMP_DELTA] for span in stay)


def _retimed(records: bytes, span: Span, shift_ms: int) -> bytes:
    """The record with its timestamp relative to another base."""
    _, attributes = varints.take(records, span[0])
    _, behind_timestamp = varints.take(records, attributes + 1)
    body = bytearray(records[attributes : attributes + 1])
    varints.put(body, span[TIMESTAMP_DELTA] + shift_ms)
    body += records[behind_timestamp : span[1]]
    sized = bytearray()
    varints.put(sized, len(body))
    return bytes(sized + body)
