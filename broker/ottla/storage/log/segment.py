"""One segment: a .log file of batches from `base_offset` on, with its two indexes.

Only the loop changes a segment (append, seal, cut). Threads may read it at the same time: `size` is set after the bytes
are written and is always between two batches, files are kept by reference (see files.py), and indexes only grow.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ottla.ports import Buffer
from ottla.storage.core import names
from ottla.storage.core.aborted import AbortedIndex
from ottla.storage.directories.files import FileCache, OpenFile
from ottla.storage.log.index import NO_TIMESTAMP, OffsetIndex, TimeIndex
from ottla.storage.log.scan import Reader, scan
from ottla.storage.log.segment_files import FILE_KINDS, SegmentFiles
from ottla.wire.batch import Batch, crc_matches

__all__ = ["FILE_KINDS", "Segment", "SegmentCut"]

RELATIVE_OFFSET_MAX = 2**31 - 1
HINTS_MAX = 64
BUFFERS_MAX = 512  # per write; the kernel's limit is 1024
INTERVAL_BYTES = 4096  # between index entries, where the topic's setting is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCut:
    """A segment after a cut: `position` bytes up to `next_offset`, and the state for the next append."""

    position: int
    next_offset: int
    index: OffsetIndex
    times: TimeIndex
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int | None


class Segment(SegmentFiles):
    """Invariants: the file's first `size` bytes are whole batches; `next_offset` is one beyond the last of them.

    `index` and `times` are in memory while the segment is active, otherwise once they were needed.
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
        self.hints: dict[int, int] = {}  # offset → start position of its batch, for readers that continue
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
        """Write one stamped batch, all or nothing; `interval` is the number of bytes between two index entries."""
        handle = self.handle
        handle.recent = True
        opened = handle.opened or self._reopen()
        opened.file.append(buffers)
        self._note(size, last_offset, max_timestamp, interval)

    def append_run(self, batches: Sequence[Batch], *, interval: int) -> None:
        """The same for several stamped batches, with one write."""
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
        if opened.file.size() > self.size:  # bytes that a failed append could not remove
            opened.file.truncate(self.size)
        return opened

    def _note(self, size: int, last_offset: int, max_timestamp: int, interval: int) -> None:
        """Account for an appended batch. `size` is set last, because readers in threads use it."""
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
        """Write the index files; the time index ends with the segment's largest timestamp, as in Kafka."""
        index, times = self.load_index(), self.load_times()
        if self.max_timestamp >= 0:
            times.append(self.max_timestamp, self._max_timestamp_offset - self.base_offset)
        wrote = [index.write(self.disk), times.write(self.disk)]
        self.indexes_unsynced |= any(wrote)

    def seal(self) -> None:
        """End appends and write the complete indexes."""
        self.write_indexes()
        self.sealed = True

    def seal_at(self, next_offset: int) -> None:
        """Seal a segment whose last batches compaction may have removed: the next segment starts at `next_offset`."""
        self.seal()
        self.unload()
        self.next_offset = next_offset

    def unload(self) -> None:
        """Drop a sealed segment's indexes from memory; they are loaded again when needed."""
        if self.sealed:
            self.index = self.times = None

    def rebuild(
        self, *, interval: int, verify: bool, below: int | None = None, seen: Callable[[Batch], None] | None = None
    ) -> int:
        """Rebuild everything from the .log file alone, up to the first invalid batch. Blocking.

        `verify` also checks every CRC; CRCs do not cover offsets, which must ascend and stay `below` the next
        segment's. Returns the number of bytes after the valid batches. Afterwards `write_indexes` replaces the index
        files; aborted transactions are not known yet.
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
        """Use the files as a clean stop or a flush left them. `next_offset` None: read it from the file. Blocking.

        False if the files are damaged after all: the index does not lead to the end of the data.
        """
        self.size = self.opened().file.size()
        self.load_aborted()
        self.sealed = next_offset is not None
        self.next_offset = self.base_offset if next_offset is None else next_offset
        if self.sealed or self.size:
            self.index = self.times = self._max_timestamp = None
        return self.sealed or not self.size or self._read_tail()

    def _read_tail(self) -> bool:
        """Load the state for the next append, so that it need not read the disk. False if that fails."""
        index, times = self.load_index(), self.load_times()
        largest, offset = times.last(self.base_offset)  # a clean stop writes the largest timestamp there
        position = index.positions[-1] if len(index) else 0
        for at, batch in self.batches(position):
            position = at + batch.size
            self.next_offset = batch.last_offset + 1
            if batch.max_timestamp > largest:
                largest, offset = batch.max_timestamp, batch.last_offset
        self._max_timestamp, self._max_timestamp_offset = largest, offset
        _ = self.first_timestamp
        return position == self.size

    # Truncation: plan_cut (any thread) → apply_cut (the loop) → cut_files (any thread); no append before the last step

    def plan_cut(self, offset: int) -> SegmentCut:
        """Plan to cut before the batch that contains `offset`. Changes nothing. Blocking.

        If no batch reaches `offset`, compaction has removed those that did: the segment ends in the gap.
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
        """(largest timestamp, its offset) before this position: scans from the last entry on, because entries are
        sparse."""
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
        """Cut in memory: readers find nothing beyond. `cut_files` follows. Returns whether aborted transactions were
        cut.
        """
        self.size, self.next_offset = cut.position, cut.next_offset
        self.hints = {}  # readers may still hold the old dict, which does no harm
        cut.index.truncate(cut.position)
        cut.times.truncate(cut.next_offset - self.base_offset)
        self.index, self.times = cut.index, cut.times
        self.sealed = False
        self.unindexed_bytes = 0
        self._max_timestamp, self._max_timestamp_offset = cut.max_timestamp, cut.max_timestamp_offset
        self._first_timestamp = cut.first_timestamp
        return self.aborted.truncate(cut.next_offset)

    def cut_files(self, *, with_aborted: bool) -> None:
        """Truncate the files, after `apply_cut`. Blocking."""
        self.opened().file.truncate(self.size)
        # A reader may have reopened the file just before, with its old size: the next append reopens it.
        self.files.forget(self.handle)
        self.load_index().cut_file(self.disk)
        self.load_times().cut_file(self.disk)
        if with_aborted:
            self.write_aborted()

    # Reading, any thread; may block

    def batches(self, position: int = 0, *, whole: bool = False) -> Iterator[tuple[int, Batch]]:
        """(position, batch) for each batch from this position to the end."""
        opened = self.opened()
        yield from scan(opened.file, start=position, end=self.size, whole=whole)

    def position_of(self, offset: int, reader: Reader | None = None) -> tuple[int, int] | None:
        """(base offset, position) of the first batch that ends at or after `offset`; None if there is none."""
        opened = self.opened()
        reader = reader or opened.file
        index, size = self.load_index(), self.size
        number, position = index.floor(offset - 1 - self.base_offset)
        if number + 1 < len(index):  # often the batch itself; its header shows that
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
        """Rebuild both indexes from the .log file, in memory and on disk, when one is missing or damaged."""
        other = Segment(self.folder, self.base_offset, files=self.files, created_ms=self.created_ms, suffix=self.suffix)
        other.rebuild(interval=INTERVAL_BYTES, verify=False)
        other.write_indexes()
        other.sync_indexes()  # the next start trusts them
        self.files.forget(other.handle)
        self.index, self.times = other.index, other.times
        return other

    def hint(self, offset: int, position: int) -> None:
        """Remember the position at which a reader will continue."""
        hints = self.hints
        if len(hints) >= HINTS_MAX:
            hints = self.hints = {}
        hints[offset] = position

    @property
    def first_timestamp(self) -> int:
        """Largest timestamp of the first batch; -1 if the segment is empty."""
        if self._first_timestamp is None:
            _, first = next(self.batches(), (0, None))
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first.max_timestamp
        return self._first_timestamp

    @property
    def max_timestamp(self) -> int:
        """-1 if no record has one."""
        largest = self._max_timestamp
        return largest if largest is not None else self._find_max_timestamp()

    @property
    def max_timestamp_offset(self) -> int:
        """Last offset of the earliest batch with the largest timestamp."""
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
        """The timestamp for retention: the largest one, or the file's if no record has one."""
        largest = self.max_timestamp
        return largest if largest >= 0 else self.disk.modified_ms(self.handle.path)
