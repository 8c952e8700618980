"""Deleting from a log's beginning: by age, by size, below its start.

Segments leave the log in memory first, on the loop (`take_expired`, `take_below_start`); then a thread renames their
files (`bury`), and the loop remembers to remove them later (`remove_later`). Meanwhile `log.changing` is held.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.errors import Code, KafkaError
from ottla.storage.core import names
from ottla.storage.log import snapshots
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

__all__ = [
    "advance_start",
    "bury",
    "doom",
    "due_for_removal",
    "expired_segments",
    "remove_later",
    "take_below_start",
    "take_expired",
]


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


def take_expired(log: "Log", now_ms: int, high_watermark: int) -> list[Segment]:
    """Take out of the log what retention deletes now. Ask `expired_segments` in a thread first: it may block."""
    expired = expired_segments(log, now_ms, high_watermark)
    if expired:
        _take(log, expired)
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


def take_below_start(log: "Log") -> list[Segment]:
    """Take out of the log the segments that lie wholly below its start."""
    below = [segment for segment in log.segments[:-1] if segment.next_offset <= log.start_offset]
    if below:
        _take(log, below)
    return below


def _take(log: "Log", segments: Sequence[Segment]) -> None:
    """These are the log's first. There is always an active segment left."""
    if segments[-1] is log.active:
        log.roll()
    log.segments = log.segments[len(segments) :]
    start = max(log.start_offset, log.segments[0].base_offset)
    if start > log.start_offset:
        log.start_offset = start
        log.epochs.truncate_start(start)


def bury(log: "Log", segment: Segment, *, keep_snapshot: bool = False) -> None:
    """Rename its files to .deleted: readers that still hold it finish in peace. Blocking."""
    segment.rename(names.DELETED)
    if not keep_snapshot:
        log.disk.remove(snapshots.path(log.folder, segment.base_offset))
    log.files.forget(segment.handle)


def remove_later(log: "Log", buried: Iterable[Segment]) -> None:
    """After file.delete.delay.ms. On the loop."""
    due_ms = log.clock.wall_ms() + log.settings.file_delete_delay_ms
    log.doomed.extend((due_ms, path) for segment in buried for path in segment.paths())


def doom(log: "Log", segments: Sequence[Segment]) -> None:
    """Both at once: where no loop waits, or for an empty segment."""
    for segment in segments:
        bury(log, segment)
    remove_later(log, segments)


def due_for_removal(log: "Log", now_ms: int) -> list[str]:
    """The files whose time has come; whoever asks removes them."""
    due = [path for due_ms, path in log.doomed if due_ms <= now_ms]
    if due:
        log.doomed = [entry for entry in log.doomed if entry[0] > now_ms]
    return due
