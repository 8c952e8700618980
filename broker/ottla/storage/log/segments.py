"""The segments of one log, oldest first; the last one is active, the others are sealed.

Only the event loop changes them. Threads may read `all` at the same time: every change replaces the tuple.
"""

from bisect import bisect_right
from collections.abc import Sequence
from threading import Lock

from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.system import System

__all__ = ["Segments", "from_offset", "must_roll", "new_segment"]

INDEXES_KEPT_MAX = 4  # loaded indexes of sealed segments, per log: readers of old data use the same few


def new_segment(folder: str, base_offset: int, *, settings: LogSettings, system: System, files: FileCache) -> Segment:
    """`create` creates its file."""
    jitter_max = min(settings.segment_jitter_ms, settings.segment_ms)
    jitter = system.random.randrange(jitter_max) if jitter_max > 0 else 0
    return Segment(folder, base_offset, files=files, created_ms=system.clock.wall_ms(), jitter_ms=jitter)


def must_roll(
    segment: Segment, settings: LogSettings, *, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> bool:
    """Whether a batch needs a new segment: by size, by age, by full indexes, or by its distance from the base
    offset."""
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
    # The time index reserves space for the entry that sealing adds.
    entries, times = len(segment.load_index().offsets), len(segment.load_times().offsets)
    return entries >= limit_bytes // 8 or times >= limit_bytes // 12 - 1


def from_offset(segments: tuple[Segment, ...], offset: int) -> Sequence[Segment]:
    """The segment that contains this offset, and those after it."""
    if offset >= segments[-1].base_offset:
        return segments[-1:]
    return segments[max(0, bisect_right(segments, offset, key=_base_offset) - 1) :]


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


class Segments:
    """Invariant: there is at least one segment, and `active` is the last of `all`."""

    __slots__ = ("_kept", "_kept_lock", "active", "all")

    def __init__(self, found: tuple[Segment, ...]) -> None:
        self.all = found
        self.active = found[-1]
        self._kept: list[Segment] = []  # sealed segments whose indexes are in memory
        self._kept_lock = Lock()

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    def keep_index(self, segment: Segment) -> None:
        """Load a sealed segment's index, and unload the least recently used one."""
        segment.load_index()
        with self._kept_lock:
            kept = [other for other in self._kept if other is not segment]
            for other in kept[: -INDEXES_KEPT_MAX + 1]:
                other.unload()
            self._kept = [*kept[-INDEXES_KEPT_MAX + 1 :], segment]

    # Changes, on the loop

    def roll(self, segment: Segment) -> Segment | None:
        """`segment` becomes active. The previous one is sealed; if it is empty it is removed and returned."""
        before = self.active
        is_empty = before.size == 0
        before.mark_sealed()
        self.all = (*(self.all[:-1] if is_empty else self.all), segment)
        self.active = segment
        self.keep_index(before)
        return before if is_empty else None

    def drop_first(self, count: int) -> None:
        assert count < len(self.all), "the active segment stays"
        self.all = self.all[count:]

    def swap(self, old: Sequence[Segment], new: Segment) -> None:
        """`new` replaces these adjacent segments, none of them active."""
        first = self.all.index(old[0])
        assert self.all[first : first + len(old)] == tuple(old) and self.active not in old, old
        self.all = (*self.all[:first], new, *self.all[first + len(old) :])

    def keep_first(self, count: int) -> None:
        """Remove the other segments; the last remaining one is active again."""
        self.all = self.all[:count]
        self.active = self.all[-1]

    def start_over(self, segment: Segment) -> None:
        self.all = (segment,)
        self.active = segment

    def moved_to(self, folder: str) -> None:
        for segment in self.all:
            segment.moved_to(folder)
