"""Deleting from a log's beginning: by age, by size, below its start. On the loop."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.errors import Code, KafkaError
from ottla.storage import names, snapshots
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log

__all__ = ["advance_start", "delete_expired", "doom", "expired_segments", "purge"]


def expired_segments(log: "Log", now_ms: int, high_watermark: int) -> list[Segment]:
    """From the oldest on, as long as one limit or another is broken and all of the segment is replicated."""
    candidates = _replicated(log, high_watermark)
    below = _while(candidates, lambda segment: segment is not log.active and segment.next_offset <= log.start_offset)
    if "delete" not in log.settings.cleanup_policies:
        return below
    rest = candidates[len(below) :]
    large = _while(rest, _larger_than_allowed(log, sum(segment.size for segment in below)))
    rest = rest[len(large) :]
    retention_ms = log.settings.retention_ms
    old = _while(rest, lambda segment: retention_ms >= 0 and now_ms - segment.largest_timestamp() > retention_ms)
    return below + large + old


def _replicated(log: "Log", high_watermark: int) -> list[Segment]:
    """Segments wholly below the high watermark; an empty active one stays."""
    return [
        segment
        for segment in log.segments
        if segment.next_offset <= high_watermark and (segment is not log.active or segment.size > 0)
    ]


def _while(segments: list[Segment], condition: Callable[[Segment], bool]) -> list[Segment]:
    kept = 0
    while kept < len(segments) and condition(segments[kept]):
        kept += 1
    return segments[:kept]


def _larger_than_allowed(log: "Log", gone_bytes: int) -> Callable[[Segment], bool]:
    excess = log.size_bytes - gone_bytes - log.settings.retention_bytes

    def condition(segment: Segment) -> bool:
        nonlocal excess
        if log.settings.retention_bytes < 0 or excess < segment.size:
            return False
        excess -= segment.size
        return True

    return condition


def delete_expired(log: "Log", now_ms: int, high_watermark: int) -> list[Segment]:
    expired = expired_segments(log, now_ms, high_watermark)
    if expired:
        _drop(log, expired)
    return expired


def advance_start(log: "Log", offset: int) -> None:
    if offset > log.end_offset:
        raise KafkaError(
            Code.offset_out_of_range,
            f"Cannot increment the log start offset to {offset} of partition {log.topic_partition} since it is larger "
            f"than its end {log.end_offset}",
        )
    if offset <= log.start_offset:
        return
    log.start_offset = offset
    log.epochs.truncate_start(offset)
    below = [segment for segment in log.segments[:-1] if segment.next_offset <= offset]
    if below:
        _drop(log, below)


def _drop(log: "Log", segments: Sequence[Segment]) -> None:
    """Take these, which are the log's first, out of it. There is always an active segment left."""
    if segments[-1] is log.active:
        log.roll()
    log.segments = log.segments[len(segments) :]
    start = max(log.start_offset, log.segments[0].base_offset)
    if start > log.start_offset:
        log.start_offset = start
        log.epochs.truncate_start(start)
    doom(log, segments)


def doom(log: "Log", segments: Sequence[Segment], *, keep_snapshots: bool = False) -> None:
    """Rename to .deleted now, remove later: readers that still hold them finish in peace."""
    due_ms = log.clock.wall_ms() + log.settings.file_delete_delay_ms
    for segment in segments:
        segment.rename(names.DELETED)
        if not keep_snapshots:
            log.disk.remove(snapshots.path(log.folder, segment.base_offset))
        log.doomed.extend((due_ms, path) for path in segment.paths())
        log.files.forget(segment.handle)


def purge(log: "Log", now_ms: int) -> None:
    due = [path for due_ms, path in log.doomed if due_ms <= now_ms]
    log.doomed = [entry for entry in log.doomed if entry[0] > now_ms]
    for path in due:
        log.disk.remove(path)
