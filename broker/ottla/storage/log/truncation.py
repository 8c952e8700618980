"""Cutting off a log's end, in steps, so that the event loop waits for no disk.

    plan (a thread, reads only) → apply (the loop, memory only) → settle (a thread, files) → finish (the loop)

A plan reads up to one segment to bring the producers from their last snapshot to the cut, which takes seconds for a
large one on a cold disk. Nothing holds the log meanwhile: if it changed, `apply` refuses the plan. From `apply` to
`finish` the caller holds `log.changing`, and nothing is appended.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ottla.storage.core.producers import Producers
from ottla.storage.log import recovery, retention, snapshots
from ottla.storage.log.segment import Segment, SegmentCut

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

__all__ = ["Cut", "Debris", "apply", "finish", "plan", "plan_fresh_start", "settle", "truncate"]


class Shape(NamedTuple):
    """What a plan relies on. A segment that was replaced or a batch that was appended makes another shape."""

    segments: tuple[Segment, ...]
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A truncation that was planned: the first `kept` segments stay, the last of them as `tail` says."""

    shape: Shape
    end: int
    kept: int = 0
    tail: SegmentCut | None = None  # None: the log begins anew at `end`
    producers: Producers
    snapshot: int = recovery.NO_SNAPSHOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Debris:
    """What a truncation that was applied still has to do to the files."""

    dropped: tuple[Segment, ...]
    active: Segment
    is_fresh: bool
    with_aborted: bool
    snapshot: int


def _shape(log: "Log") -> Shape:
    return Shape(log.segments, log.start_offset, log.end_offset)


def plan(log: "Log", offset: int) -> Cut | None:
    """How the log ends at `offset`, or before the batch that holds it; None when it ends there already. Blocking."""
    shape = _shape(log)
    if offset >= shape.end_offset:
        return None
    if offset < shape.segments[0].base_offset:
        return plan_fresh_start(log, offset)
    kept = sum(segment.base_offset <= offset for segment in shape.segments)
    tail = shape.segments[kept - 1].plan_cut(offset)
    producers, snapshot = recovery.producers_at(log, tail.next_offset)
    return Cut(shape=shape, end=tail.next_offset, kept=kept, tail=tail, producers=producers, snapshot=snapshot)


def plan_fresh_start(log: "Log", offset: int) -> Cut:
    """How everything is dropped and the log begins anew at `offset`."""
    producers = Producers(log.topic_partition)
    producers.end_offset = offset
    return Cut(shape=_shape(log), end=offset, producers=producers)


def apply(log: "Log", cut: Cut) -> Debris | None:
    """Cut the log in memory, with its epochs and producers; None when the log changed since the plan was made."""
    now = _shape(log)
    if now != cut.shape:
        return None
    with_aborted = False
    if cut.tail is None:
        active = log.prepare_segment(cut.end)
        log.segments = (active,)
        log.epochs.clear()
    else:
        log.segments = now.segments[: cut.kept]
        active = log.segments[-1]
        with_aborted = active.apply_cut(cut.tail)
    log.active = active
    log.ends_at(cut.end)
    log.start_offset = cut.end if cut.tail is None else min(log.start_offset, cut.end)
    log.snapshot_offset = max(cut.snapshot, log.start_offset)
    log.producers.take_over(cut.producers)
    return Debris(
        dropped=now.segments[cut.kept :],
        active=active,
        is_fresh=cut.tail is None,
        with_aborted=with_aborted,
        snapshot=cut.snapshot,
    )


def settle(log: "Log", debris: Debris) -> None:
    """Bring the files after. Blocking; never two at once for a log.

    From the newest segment to the oldest, and the one that stays last: a crash between two steps leaves a log that
    ends later, not one with a hole.
    """
    for segment in reversed(debris.dropped):
        retention.bury(log, segment)
    if debris.is_fresh:
        debris.active.create()
    else:
        debris.active.cut_files(with_aborted=debris.with_aborted)
    snapshots.remove_newer(log.disk, log.folder, debris.snapshot)


def finish(log: "Log", debris: Debris) -> None:
    retention.remove_later(log, debris.dropped)
    log.folder_changed()  # again: a flush may have synced the folder before its names changed


def truncate(log: "Log", cut: Cut | None) -> None:
    """All steps at once. Blocking: where no loop waits, or the log is empty."""
    debris = apply(log, cut) if cut is not None else None
    if debris is not None:
        settle(log, debris)
        finish(log, debris)
