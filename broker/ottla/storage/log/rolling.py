"""When a batch has to go into a new segment."""

from ottla.storage.core.settings import LogSettings
from ottla.storage.log.segment import RELATIVE_OFFSET_MAX, Segment

__all__ = ["must_roll"]


def must_roll(
    segment: Segment, settings: LogSettings, *, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """By size, by age, by full indexes, or by an offset too far from the segment's base."""
    if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return True
    if segment.size == 0:
        return False
    first = segment.first_timestamp
    waited_ms = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
    return (
        segment.size + size > settings.segment_bytes
        or waited_ms > settings.segment_ms - segment.jitter_ms
        or _indexes_full(segment, settings.segment_index_bytes)
    )


def _indexes_full(segment: Segment, limit_bytes: int) -> bool:
    # The time index keeps a place for the entry that sealing adds.
    entries, times = len(segment.load_index().offsets), len(segment.load_times().offsets)
    return entries >= limit_bytes // 8 or times >= limit_bytes // 12 - 1
