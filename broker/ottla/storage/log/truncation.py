"""Cutting off a log's end, in steps, so that the event loop waits for no disk.

    Log.plan_truncation     a thread, reads only
    Log.apply_truncation    the loop, memory only
    truncate_files          a thread, the files
    Log.finish_truncation   the loop

A plan reads up to one segment to bring the producers from their last snapshot to the cut, which takes seconds for a
large one on a cold disk. Nothing holds the log meanwhile: if it changed, `apply_truncation` refuses the plan. From
there to the end the caller holds `log.changing`, and nothing is appended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ottla.storage.core.producers import Producers
from ottla.storage.log import snapshots
from ottla.storage.log.replay import NO_SNAPSHOT
from ottla.storage.log.segment import Segment, SegmentCut

__all__ = ["FileTruncation", "Shape", "Truncation", "plan", "plan_fresh_start", "truncate_files"]


class Shape(NamedTuple):
    """What a plan relies on. A segment that was replaced or a batch that was appended makes another shape."""

    segments: tuple[Segment, ...]
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A truncation that was planned: the first `kept` segments stay, the last of them as `tail` says."""

    shape: Shape
    end: int
    kept: int = 0
    tail: SegmentCut | None = None  # None: the log starts over at `end`
    producers: Producers
    snapshot: int = NO_SNAPSHOT


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTruncation:
    """What a truncation that was applied still has to do to the files."""

    dropped: tuple[Segment, ...]
    active: Segment
    is_fresh: bool
    with_aborted: bool
    snapshot: int


def plan(
    shape: Shape, offset: int, *, topic_partition: str, producers_at: Callable[[int], tuple[Producers, int]]
) -> Truncation | None:
    """`producers_at` gives the producers as they are at an offset, and the snapshot from which they were rebuilt."""
    if offset >= shape.end_offset:
        return None
    if offset < shape.segments[0].base_offset:
        return plan_fresh_start(shape, offset, topic_partition=topic_partition)
    kept = sum(segment.base_offset <= offset for segment in shape.segments)
    tail = shape.segments[kept - 1].plan_cut(offset)
    producers, snapshot = producers_at(tail.next_offset)
    return Truncation(shape=shape, end=tail.next_offset, kept=kept, tail=tail, producers=producers, snapshot=snapshot)


def plan_fresh_start(shape: Shape, offset: int, *, topic_partition: str) -> Truncation:
    producers = Producers(topic_partition)
    producers.advance_to(offset)
    return Truncation(shape=shape, end=offset, producers=producers)


def truncate_files(files: FileTruncation) -> None:
    """The files after `Log.apply_truncation`. Blocking; never two at once for a log.

    From the newest segment to the oldest, and the one that stays last: a crash between two steps leaves a log that
    ends later, not one with a hole.
    """
    for segment in reversed(files.dropped):
        segment.mark_deleted()
    active = files.active
    if files.is_fresh:
        active.create()
    else:
        active.cut_files(with_aborted=files.with_aborted)
    snapshots.remove_newer(active.disk, active.folder, files.snapshot)
