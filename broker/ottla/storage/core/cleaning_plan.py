"""Which log to compact next, and up to which offset. Pure.

    log start       first dirty        upto            active segment
        |  clean part  |  dirty part    |  not yet         |
                             ^ the offset map covers this

`upto` is the base of the first segment that must not be cleaned: the active one, the one with the last stable offset,
or the first with a record younger than min.compaction.lag.ms.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.storage.core.settings import LogSettings

__all__ = ["Due", "LogFacts", "SegmentFacts", "dirtiest", "due"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentFacts:
    """Timestamps of the whole segment and of its first batch; 0 if the topic's settings do not need them."""

    base_offset: int
    size: int
    max_timestamp: int = 0
    first_timestamp: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFacts:
    """`segments` without the active one. `checkpoint` is the end of the last cleaning; None before the first."""

    settings: LogSettings
    segments: Sequence[SegmentFacts]
    active_base: int
    start_offset: int
    end_offset: int
    stable_offset: int
    checkpoint: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    first_dirty: int
    upto: int
    ratio: float


def due(facts: LogFacts, now_ms: int) -> Due | None:
    """How far a log may be cleaned now; None unless it is dirty enough or its oldest dirty record is old enough."""
    first_dirty = _first_dirty(facts)
    upto = _upto(facts, first_dirty, now_ms)
    dirty = [one for one in _from(facts, first_dirty) if one.base_offset < upto]
    dirty_bytes = sum(one.size for one in dirty)
    clean_bytes = sum(one.size for one in facts.segments if one.base_offset < min(first_dirty, upto))
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / (dirty_bytes + clean_bytes)
    if ratio > facts.settings.min_cleanable_dirty_ratio or _waited_too_long(facts, first_dirty, now_ms):
        return Due(first_dirty=first_dirty, upto=upto, ratio=ratio)
    return None


def dirtiest(candidates: Iterable[Due | None]) -> int | None:
    """The index of the one to clean first."""
    numbered = [(one.ratio, -index) for index, one in enumerate(candidates) if one is not None]
    return -max(numbered)[1] if numbered else None


def _first_dirty(facts: LogFacts) -> int:
    """A checkpoint outside the log is ignored: the whole log counts as dirty."""
    if facts.checkpoint is None or not facts.start_offset <= facts.checkpoint <= facts.end_offset:
        return facts.start_offset
    return facts.checkpoint


def _upto(facts: LogFacts, first_dirty: int, now_ms: int) -> int:
    limit = min(facts.stable_offset, facts.active_base)
    if facts.settings.min_compaction_lag_ms > 0:
        young_ms = now_ms - facts.settings.min_compaction_lag_ms
        dirty = _from(facts, first_dirty)
        limit = min(limit, next((one.base_offset for one in dirty if one.max_timestamp > young_ms), limit))
    held = _from(facts, max(limit, first_dirty))
    return held[0].base_offset if held else facts.active_base


def _from(facts: LogFacts, offset: int) -> Sequence[SegmentFacts]:
    """The segment that holds the offset, and those after it; none when the offset lies in the active one."""
    ends = [*(one.base_offset for one in facts.segments[1:]), facts.active_base] if facts.segments else []
    return [one for one, end in zip(facts.segments, ends, strict=True) if end > offset]


def _waited_too_long(facts: LogFacts, first_dirty: int, now_ms: int) -> bool:
    stamps = [one.first_timestamp for one in _from(facts, first_dirty) if one.first_timestamp > 0]
    return bool(stamps) and min(stamps) < now_ms - max(facts.settings.max_compaction_lag_ms, 0)
