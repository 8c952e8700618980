"""Which segments are deleted from a log's start: by age, by size, below the log start.

The loop removes such segments from the log in memory (`Log.take_expired`, `Log.take_below_start`); a thread renames
their files (`mark_deleted`); the loop schedules their removal (`Log.remove_later`). `log.changing` is held meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence

from ottla.storage.core.settings import LogSettings
from ottla.storage.log.segment import Segment

__all__ = ["expired_segments", "mark_deleted"]


def expired_segments(
    segments: Sequence[Segment], settings: LogSettings, *, start_offset: int, high_watermark: int, now_ms: int
) -> list[Segment]:
    """The oldest segments, as long as a limit is exceeded and the segment is fully replicated."""
    active = segments[-1]
    candidates = _replicated(segments, high_watermark)
    below = _while(candidates, lambda segment: segment is not active and segment.next_offset <= start_offset)
    if "delete" not in settings.cleanup_policies:
        return below
    rest = candidates[len(below) :]
    total_bytes = sum(segment.size for segment in segments) - sum(segment.size for segment in below)
    large = _while(rest, _larger_than_allowed(total_bytes, settings.retention_bytes))
    rest = rest[len(large) :]
    retention_ms = settings.retention_ms
    old = _while(rest, lambda segment: retention_ms >= 0 and now_ms - segment.largest_timestamp() > retention_ms)
    return below + large + old


def _replicated(segments: Sequence[Segment], high_watermark: int) -> list[Segment]:
    """Segments below the high watermark; an empty active one is excluded."""
    active = segments[-1]
    return [
        segment
        for segment in segments
        if segment.next_offset <= high_watermark and (segment is not active or segment.size > 0)
    ]


def _while(segments: list[Segment], condition: Callable[[Segment], bool]) -> list[Segment]:
    kept = 0
    while kept < len(segments) and condition(segments[kept]):
        kept += 1
    return segments[:kept]


def _larger_than_allowed(total_bytes: int, retention_bytes: int) -> Callable[[Segment], bool]:
    excess = total_bytes - retention_bytes

    def condition(segment: Segment) -> bool:
        nonlocal excess
        if retention_bytes < 0 or excess < segment.size:
            return False
        excess -= segment.size
        return True

    return condition


def mark_deleted(segments: Iterable[Segment]) -> None:
    """Blocking."""
    for segment in segments:
        segment.mark_deleted()
