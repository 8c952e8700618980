"""Finds offsets by timestamp. The only reads that decode batches. Blocking; in threads."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.storage.log.segment import Segment
from ottla.wire.batch import Batch
from ottla.wire.record_checks import body_pieces
from ottla.wire.record_times import deltas
from ottla.wire.records import LOG_APPEND_TIME

__all__ = ["TimestampOffset", "max_timestamp", "offset_for_timestamp"]


class TimestampOffset(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


def offset_for_timestamp(segments: Sequence[Segment], timestamp: int, *, start: int) -> TimestampOffset | None:
    for segment in segments:
        if segment.size and segment.max_timestamp >= timestamp:
            found = _first_at_or_after(segment, timestamp, start)
            if found is not None:
                return found
    return None


def _first_at_or_after(segment: Segment, timestamp: int, start: int) -> TimestampOffset | None:
    likely = segment.base_offset + segment.load_times().floor(timestamp)
    found = segment.position_of(max(likely, start))
    if found is None:
        return None
    for _, batch in segment.batches(found[1], whole=True):
        if batch.max_timestamp >= timestamp:
            for found_offset, found_time in _times(batch):
                if found_time >= timestamp and found_offset >= start:
                    return TimestampOffset(found_offset, found_time, batch.leader_epoch)
    return None


def max_timestamp(segments: Sequence[Segment]) -> TimestampOffset | None:
    segment = max(segments, key=lambda candidate: candidate.max_timestamp)
    largest = segment.max_timestamp
    found = segment.position_of(segment.max_timestamp_offset) if largest >= 0 else None
    if found is None:
        return None
    _, batch = next(segment.batches(found[1], whole=True))
    for found_offset, found_time in _times(batch):
        if found_time == largest:
            return TimestampOffset(found_offset, largest, batch.leader_epoch)
    return None


def _times(batch: Batch) -> Iterator[tuple[int, int]]:
    """Offsets and timestamps only: a batch may have very many and large records."""
    append_time = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None
    for offset, timestamp in deltas(body_pieces(batch), batch.count):
        yield batch.base_offset + offset, batch.base_timestamp + timestamp if append_time is None else append_time
