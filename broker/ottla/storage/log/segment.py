"""One segment: a .log file of batches from `base_offset` on, with its two indexes.

Only the loop changes a segment (append, seal, cut). Threads may read it at the same time: `size` moves after the bytes
are written and always stands between two batches, files are held by reference (see files.py), and indexes only grow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ottla.ports import Buffer
from ottla.storage.core import names
from ottla.storage.directories.files import FileCache, OpenFile
from ottla.storage.log.aborted_index import AbortedIndex
from ottla.storage.log.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from ottla.storage.log.scan import Reader, scan
from ottla.storage.log.segment_files import FILE_KINDS, SegmentFiles
from ottla.wire.batch import Batch, crc_matches

__all__ = ["FILE_KINDS", "Segment", "SegmentCut"]

RELATIVE_OFFSET_MAX = 2**31 - 1
HINTS_MAX = 64
BUFFERS_MAX = 512  # in one write; the kernel takes 1024
INTERVAL_BYTES = 4096  # between index entries that are rebuilt without a topic's setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCut:
    """What a segment is after a cut: `position` bytes up to `next_offset`, and what appends go on from."""

    position: int
    next_offset: int
    index: OffsetIndex
    times: TimeIndex
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int | None


class Segment(SegmentFiles):
    """Invariants: the file's first `size` bytes are whole batches; `next_offset` is one beyond the last of them.

    `index` and `times` are in memory while the segment is active, and otherwise when somebody asked for them.
    """

    __slots__ = (
        "_first_timestamp",
        "_max_timestamp",
        "_max_timestamp_offset",
        "created_ms",
        "hints",
        "index",
        "jitter_ms",
        "next_offset",
        "size",
        "times",
        "unindexed_bytes",
    )

    def __init__(
        self, folder: str, base_offset: int, *, files: FileCache, created_ms: int, jitter_ms: int = 0, suffix: str = ""
    ) -> None:
        super().__init__(folder, base_offset, files=files, suffix=suffix)
        self.next_offset = base_offset
        self.size = 0
        self.index: OffsetIndex | None = OffsetIndex(self.path(names.INDEX))
        self.times: TimeIndex | None = TimeIndex(self.path(names.TIME_INDEX))
        self.hints: dict[int, int] = {}  # offset → position where its batch begins, for readers that go on
        self.created_ms = created_ms
        self.jitter_ms = jitter_ms
        self.unindexed_bytes = 0
        self._first_timestamp: int | None = None  # of the first batch; None: not known
        self._max_timestamp: int | None = NO_TIMESTAMP  # None: not known
        self._max_timestamp_offset = base_offset

    def __repr__(self) -> str:
        return f"Segment({self.handle.path}, {self.size} bytes, to {self.next_offset})"

    # Writing, on the loop

    def append(
        self, buffers: Sequence[Buffer], *, size: int, last_offset: int, max_timestamp: int, interval: int
    ) -> None:
        """Write one stamped batch, whole or not at all; `interval` bytes lie between two index entries."""
        handle = self.handle
        handle.recent = True
        opened = handle.opened or self._reopen()
        opened.file.append(buffers)
        self._note(size, last_offset, max_timestamp, interval)

    def append_run(self, batches: Sequence[Batch], *, interval: int) -> None:
        """The same for several that are stamped already, with one write."""
        handle = self.handle
        handle.recent = True
        opened = handle.opened or self._reopen()
        for begin in range(0, len(batches), BUFFERS_MAX):
            run = batches[begin : begin + BUFFERS_MAX]
            opened.file.append([batch.data for batch in run])
            for batch in run:
                self._note(batch.size, batch.last_offset, batch.max_timestamp, interval)

    def _reopen(self) -> OpenFile:
        opened = self.files.open(self.handle)
        if opened.file.size() > self.size:  # what a failed append could not take back
            opened.file.truncate(self.size)
        return opened

    def _note(self, size: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """A batch now follows the others. `size` moves last: readers in threads go by it."""
        position = self.size
        largest = self.max_timestamp
        if max_timestamp > largest:
            largest = self._max_timestamp = max_timestamp
            self._max_timestamp_offset = last_offset
        if position == 0:
            self._first_timestamp = max_timestamp
        if self.unindexed_bytes > interval:
            self.load_index().append(last_offset - self.base_offset, position)
            self.load_times().append(largest, self._max_timestamp_offset - self.base_offset)
            self.unindexed_bytes = 0
        self.unindexed_bytes += size
        self.next_offset = last_offset + 1
        self.size = position + size

    def write_indexes(self) -> None:
        """Bring the index files up to date; the time index ends with the segment's largest timestamp, as in Kafka."""
        index, times = self.load_index(), self.load_times()
        if self.max_timestamp >= 0:
            times.append(self.max_timestamp, self._max_timestamp_offset - self.base_offset)
        wrote = [index.write(self.disk), times.write(self.disk)]
        self.indexes_unsynced |= any(wrote)

    def seal(self) -> None:
        """No more appends: the indexes are complete in their files."""
        self.write_indexes()
        self.sealed = True

    def seal_at(self, next_offset: int) -> None:
        """Seal a segment whose last batches compaction may have taken: the next segment begins at `next_offset`."""
        self.seal()
        self.unload()
        self.next_offset = next_offset

    def unload(self) -> None:
        """Drop a sealed segment's indexes from memory; they are read again when needed."""
        if self.sealed:
            self.index = self.times = None

    def rebuild(
        self, *, interval: int, verify: bool, below: int | None = None, seen: Callable[[Batch], None] | None = None
    ) -> int:
        """Learn everything from the .log file alone, up to the first byte that is not of a sound batch. Blocking.

        `verify` checks every CRC too; it does not cover offsets, but they ascend and stay `below` the next segment's.
        The number of bytes left over. `write_indexes` replaces the index files; who was aborted is not known yet.
        """
        index, times = OffsetIndex(self.path(names.INDEX)), TimeIndex(self.path(names.TIME_INDEX))
        self.index, self.times, self.hints = index, times, {}
        self.aborted = AbortedIndex()
        self.size = self.unindexed_bytes = 0
        self.next_offset = self._max_timestamp_offset = self.base_offset
        self._max_timestamp, self._first_timestamp = NO_TIMESTAMP, None
        opened = self.opened()
        end = opened.file.size()
        for _, batch in scan(opened.file, start=0, end=end, whole=verify):
            if not self._continues(batch, below) or (verify and not crc_matches(batch)):
                break
            self._note(batch.size, batch.last_offset, batch.max_timestamp, interval)
            if seen is not None:
                seen(batch)
        return end - self.size

    def _continues(self, batch: Batch, below: int | None) -> bool:
        in_order = batch.base_offset >= self.next_offset and batch.last_offset_delta >= 0
        end = self.base_offset + RELATIVE_OFFSET_MAX + 1 if below is None else below
        return in_order and batch.magic == 2 and batch.last_offset < end

    def adopt(self, *, next_offset: int | None) -> bool:
        """Take over files that a clean stop or a flush left sound; the next offset is read from the file when it is
        None. Blocking.

        False when they are not sound after all: the index does not lead to the end of the data.
        """
        self.size = self.opened().file.size()
        self.load_aborted()
        self.sealed = next_offset is not None
        self.next_offset = self.base_offset if next_offset is None else next_offset
        if self.sealed or self.size:
            self.index = self.times = self._max_timestamp = None
        return self.sealed or not self.size or self._read_tail()

    def _read_tail(self) -> bool:
        """What appends go on from, so that the first of them need not ask the disk. False when it is not found."""
        index, times = self.load_index(), self.load_times()
        largest, offset = times.last(self.base_offset)  # a clean stop leaves the largest there
        position = index.positions[-1] if len(index) else 0
        for at, batch in self.batches(position):
            position = at + batch.size
            self.next_offset = batch.last_offset + 1
            if batch.max_timestamp > largest:
                largest, offset = batch.max_timestamp, batch.last_offset
        self._max_timestamp, self._max_timestamp_offset = largest, offset
        _ = self.first_timestamp
        return position == self.size

    # Cutting: plan_cut (any thread) → apply_cut (the loop) → cut_files (any thread), and no append before the last

    def plan_cut(self, offset: int) -> SegmentCut:
        """Find where the batch that holds `offset` begins, and what is left before it. Changes nothing. Blocking.

        Where no batch reaches so far, compaction removed those that did: the segment ends in the gap they left.
        """
        index, times = self.load_index(), self.load_times()
        base, position = self.position_of(offset) or (offset, self.size)
        next_offset = min(offset, base)
        largest, largest_offset = self._largest_below(index, times, position, next_offset)
        return SegmentCut(
            position=position,
            next_offset=next_offset,
            index=index,
            times=times,
            max_timestamp=largest,
            max_timestamp_offset=largest_offset,
            first_timestamp=self.first_timestamp if position else None,
        )

    def _largest_below(self, index: OffsetIndex, times: TimeIndex, position: int, next_offset: int) -> tuple[int, int]:
        """(largest timestamp, its offset) before this position: from the last entry on, for entries are sparse."""
        kept = times.kept_below(next_offset - self.base_offset)
        largest, offset = NO_TIMESTAMP, self.base_offset
        if kept:
            largest, offset = times.timestamps[kept - 1], self.base_offset + times.offsets[kept - 1]
        _, start = index.floor(offset - self.base_offset)
        for _, batch in scan(self.opened().file, start=start, end=position):
            if batch.max_timestamp > largest:
                largest, offset = batch.max_timestamp, batch.last_offset
        return largest, offset

    def apply_cut(self, cut: SegmentCut) -> bool:
        """In memory: readers find nothing beyond the cut any more. The files follow with `cut_files`.

        Whether there are fewer aborted transactions now.
        """
        self.size, self.next_offset = cut.position, cut.next_offset
        self.hints = {}  # a reader that still holds the old dict does no harm
        cut.index.truncate(cut.position)
        cut.times.truncate(cut.next_offset - self.base_offset)
        self.index, self.times = cut.index, cut.times
        self.sealed = False
        self.unindexed_bytes = 0
        self._max_timestamp, self._max_timestamp_offset = cut.max_timestamp, cut.max_timestamp_offset
        self._first_timestamp = cut.first_timestamp
        return self.aborted.truncate(cut.next_offset)

    def cut_files(self, *, with_aborted: bool) -> None:
        """The files after `apply_cut`. Blocking."""
        self.opened().file.truncate(self.size)
        # A reader may have opened it again just before, with its old size: the next append opens it once more.
        self.files.forget(self.handle)
        self.load_index().cut_file(self.disk)
        self.load_times().cut_file(self.disk)
        if with_aborted:
            self.write_aborted()

    # Reading, any thread; may block

    def batches(self, position: int = 0, *, whole: bool = False) -> Iterator[tuple[int, Batch]]:
        """(position, batch) from a batch's position to the end."""
        opened = self.opened()
        yield from scan(opened.file, start=position, end=self.size, whole=whole)

    def position_of(self, offset: int, reader: Reader | None = None) -> tuple[int, int] | None:
        """(base offset, position) of the first batch that ends at or beyond `offset`; None if there is none."""
        opened = self.opened()
        reader = reader or opened.file
        index, size = self.load_index(), self.size
        number, position = index.floor(offset - 1 - self.base_offset)
        if number + 1 < len(index):  # often the very batch; its header shows it
            likely = index.positions[number + 1]
            base = int.from_bytes(reader.read(likely, 8), "big")
            if base <= offset:
                return base, likely
        for at, batch in scan(reader, start=position, end=size):
            if batch.last_offset >= offset:
                return batch.base_offset, at
        return None

    def load_index(self) -> OffsetIndex:
        if (index := self.index) is None:
            with self.naming:
                try:
                    index = self.index = OffsetIndex.load(self.disk, self.path(names.INDEX))
                except (FileNotFoundError, ValueError):
                    index = self._reindexed().load_index()
        return index

    def load_times(self) -> TimeIndex:
        if (times := self.times) is None:
            with self.naming:
                try:
                    times = self.times = TimeIndex.load(self.disk, self.path(names.TIME_INDEX))
                except (FileNotFoundError, ValueError):
                    times = self._reindexed().load_times()
        return times

    def _reindexed(self) -> "Segment":
        """Rebuild the indexes from the .log file, in memory and on disk, when one is missing or unsound."""
        other = Segment(self.folder, self.base_offset, files=self.files, created_ms=self.created_ms, suffix=self.suffix)
        other.rebuild(interval=INTERVAL_BYTES, verify=False)
        other.write_indexes()
        other.sync_indexes()  # nobody else would, and the next start trusts them
        self.files.forget(other.handle)
        self.index, self.times = other.index, other.times
        return other

    def hint(self, offset: int, position: int) -> None:
        """Remember where a reader will go on."""
        hints = self.hints
        if len(hints) >= HINTS_MAX:
            hints = self.hints = {}
        hints[offset] = position

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch; -1 when the segment is empty."""
        if self._first_timestamp is None:
            _, first = next(self.batches(), (0, None))
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first.max_timestamp
        return self._first_timestamp

    @property
    def max_timestamp(self) -> int:
        """-1 when no record has one."""
        largest = self._max_timestamp
        return largest if largest is not None else self._find_max_timestamp()

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the earliest batch that has the largest timestamp."""
        return self._max_timestamp_offset if self.max_timestamp >= 0 else self.base_offset

    def _find_max_timestamp(self) -> int:
        times = self.load_times()
        largest, offset = times.last(self.base_offset)
        if not (self.sealed and len(times)):  # the last entry of a sealed segment is its largest
            _, position = self.load_index().floor(offset - self.base_offset)
            for _, batch in self.batches(position):
                if batch.max_timestamp > largest:
                    largest, offset = batch.max_timestamp, batch.last_offset
        self._max_timestamp_offset = offset
        self._max_timestamp = largest
        return largest

    def largest_timestamp(self) -> int:
        """What retention goes by: the largest timestamp, or the file's age when no record has one."""
        largest = self.max_timestamp
        return largest if largest >= 0 else self.disk.modified_ms(self.handle.path)
