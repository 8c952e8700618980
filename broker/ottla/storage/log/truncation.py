"""Truncates a log in steps, so that the event loop never waits for the disk.

    Log.plan_truncation     a thread, reads only
    Log.apply_truncation    the loop, memory only
    truncate_files          a thread, the files
    Log.finish_truncation   the loop

A plan reads up to one segment to replay the producers from their last snapshot to the new end, which takes seconds for
a large segment on a cold disk. The log is not locked meanwhile: if it changed, `apply_truncation` refuses the plan.
From then on the caller holds `log.changing`, and nothing is appended.
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
    """What a plan relies on. It differs after a segment was replaced or a batch was appended."""

    segments: tuple[Segment, ...]
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A planned truncation: the first `kept` segments remain, the last of them cut as in `tail`."""

    shape: Shape
    end: int
    kept: int = 0
    tail: SegmentCut | None = None  # None: the log starts over at `end`
    producers: Producers
    snapshot: int = NO_SNAPSHOT


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTruncation:
    """The remaining work on files after a truncation was applied."""

    dropped: tuple[Segment, ...]
    active: Segment
    is_fresh: bool
    with_aborted: bool
    snapshot: int


def plan(
    shape: Shape, offset: int, *, topic_partition: str, producers_at: Callable[[int], tuple[Producers, int]]
) -> Truncation | None:
    """`producers_at` returns the producers at an offset, and the offset of the snapshot they were rebuilt from."""
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
    """Truncate the files, after `Log.apply_truncation`. Blocking; never twice at the same time for a log.

    From the newest segment to the oldest, with the remaining one last: a crash between two steps leaves a longer log,
    not one with a gap.
    """
    for segment in reversed(files.dropped):
        segment.mark_deleted()
    active = files.active
    if files.is_fresh:
        active.create()
    else:
        active.cut_files(with_aborted=files.with_aborted)
    snapshots.remove_newer(active.disk, active.folder, files.snapshot)
