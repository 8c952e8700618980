"""Reads slices of whole batches: on the loop if the pages are in the page cache, otherwise in a thread.

`locate` finds a slice without reading it: the response to a fetch is read when it is sent.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer, File
from ottla.storage.core.slice import Slice
from ottla.storage.directories.files import OpenFile
from ottla.storage.log import timestamps
from ottla.storage.log.scan import Reader, scan
from ottla.storage.log.segment import Segment
from ottla.storage.log.segments import Segments, from_offset
from ottla.storage.log.timestamps import TimestampOffset

__all__ = ["FileRegion", "Located", "ReadableLog"]


class Cold(Exception):
    """The data is not in the page cache."""


class FileRegion:
    """A range of a segment's file. It keeps the file open, so deletion or compaction of the segment does not matter.

    Its bytes are below the high watermark, so only an unclean election can truncate them; then a read is short, or
    fails the client's checksum, as with Kafka's sendfile.
    """

    __slots__ = ("_on_failure", "_opened", "_position", "_size")

    def __init__(self, opened: OpenFile, position: int, size: int) -> None:
        self._opened = opened
        self._position = position
        self._size = size
        self._on_failure: Callable[[OSError], object] = _ignore

    def __len__(self) -> int:
        return self._size

    def read_now(self, offset: int, size: int) -> Buffer | None:
        """None if the data is not in the page cache; fewer bytes if the file was truncated."""
        return self._opened.file.read_now(self._position + offset, size)

    def read(self, offset: int, size: int) -> bytes:
        """The same from disk. Blocking."""
        return self._opened.file.read(self._position + offset, size)

    def on_failure(self, callback: Callable[[OSError], object]) -> None:
        self._on_failure = callback

    def failed(self, error: OSError) -> None:
        """Called when a later read raised this error."""
        self._on_failure(error)


def _ignore(error: OSError) -> None:
    """For readers that report errors themselves."""


class Located(NamedTuple):
    """A slice that is not read yet."""

    region: FileRegion | None
    aborted: Sequence[tuple[int, int]]

    def read_now(self) -> Slice | None:
        """None if the data is not in the page cache."""
        if self.region is None:
            return Slice(b"", self.aborted)
        size = len(self.region)
        data = self.region.read_now(0, size)
        return None if data is None or len(data) < size else Slice(data, self.aborted)

    def read(self) -> Slice:
        """The same from disk. Blocking."""
        return Slice(b"" if self.region is None else self.region.read(0, len(self.region)), self.aborted)


NOTHING = Located(None, ())


class HotReader:
    """A file, as far as it is in the page cache; otherwise raises Cold."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    def read(self, position: int, size: int) -> Buffer:
        data = self._file.read_now(position, size)
        if data is None or len(data) < size:
            raise Cold
        return data


class ReadableLog:
    """The part of a log that any thread may use while the event loop appends, rolls and truncates.

    Invariants: start_offset <= end_offset; both lie within the segments.
    """

    def __init__(self, topic_partition: str, segments: Segments, *, start_offset: int, end_offset: int) -> None:
        self.topic_partition = topic_partition
        self.start_offset = start_offset
        self.end_offset = end_offset
        self._segments = segments

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments.all

    @property
    def active(self) -> Segment:
        return self._segments.active

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    def read(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes | None:
        """Whole batches from the one that contains `start`, all below `end`; b"" if there are none.

        At most `size_bytes_max`; with `whole_first` the first batch in any case. KafkaError: OFFSET_OUT_OF_RANGE. None
        if the data is not in the page cache: call `read_cold` with the same arguments in a thread.
        """
        found = self.read_slice(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        return None if found is None else bytes(found.data)

    def read_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes:
        return bytes(
            self.read_slice_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first).data
        )

    def read_slice(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice | None:
        """As `read`, with the aborted transactions that a read_committed consumer must skip."""
        found = self.locate(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        return None if found is None else found.read_now()

    def read_slice_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice:
        return self.locate_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first).read()

    def locate(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located | None:
        """The range that `read_slice` would read, to be read when it is sent. None: call `locate_cold` in a thread."""
        self._require_in_range(start)
        try:
            return _locate(self._segments, start, min(end, self.end_offset), size_bytes_max, whole_first, hot=True)
        except Cold:
            return None

    def locate_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located:
        """If a segment is deleted meanwhile, the range is located again in the remaining ones."""
        while True:
            segments = self._segments.all
            self._require_in_range(start)
            try:
                return _locate(self._segments, start, min(end, self.end_offset), size_bytes_max, whole_first, hot=False)
            except FileNotFoundError:
                if segments is self._segments.all:
                    raise

    def _require_in_range(self, offset: int) -> None:
        if not self.start_offset <= offset <= self.end_offset:
            raise KafkaError(
                Code.offset_out_of_range,
                f"Received request for offset {offset} for partition {self.topic_partition}, but we only have log "
                f"segments in the range {self.start_offset} to {self.end_offset}.",
            )

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record with this or a later timestamp. Blocking."""
        return timestamps.offset_for_timestamp(self._segments.all, timestamp, start=self.start_offset)

    def max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp. Blocking."""
        return timestamps.max_timestamp(self._segments.all)


def _locate(segments: Segments, start: int, end: int, size_max: int, whole_first: bool, *, hot: bool) -> Located:
    """`hot`: raise Cold if the data is not in the page cache."""
    if start >= end:
        return NOTHING
    # Aborted transactions come from the same segments: compaction may replace them meanwhile.
    candidates = from_offset(segments.all, start)
    for number, segment in enumerate(candidates):
        found = _slice(segments, segment, start, end, size_max, whole_first, hot=hot)
        if found is not None:
            region, stop_offset = found
            return Located(region, _aborted(candidates[number:], start, stop_offset) if region is not None else ())
    return NOTHING


def _aborted(segments: Sequence[Segment], start: int, stop: int) -> list[tuple[int, int]]:
    """A marker may be in a later segment than its records."""
    found: list[tuple[int, int]] = []
    for segment in segments:
        if not len(segment.aborted):
            continue
        some, complete = segment.aborted.overlapping(start, stop)
        found += some
        if complete:
            break
    return sorted(found, key=lambda one: one[1]) if found else found


def _slice(
    segments: Segments, segment: Segment, start: int, end: int, size_max: int, whole_first: bool, *, hot: bool
) -> tuple[FileRegion | None, int] | None:
    """The batches and the offset after them; None if the segment has no batch that ends at or beyond `start`."""
    size = segment.size  # before next_offset: see Segment._note
    next_offset = segment.next_offset
    if segment.index is None:
        if hot:
            raise Cold
        segments.keep_index(segment)
    segment.handle.recent = True
    opened = segment.handle.opened
    if opened is None:
        if hot:
            raise Cold
        opened = segment.opened()
    reader: Reader = HotReader(opened.file) if hot else opened.file
    position = _position(segment, start, reader)
    if position is None or position >= size:
        return None
    stop, stop_offset = size, next_offset
    if end < next_offset:
        limit = _position(segment, end, reader)
        stop, stop_offset = (limit, end) if limit is not None else (size, next_offset)
    if stop - position > size_max:
        stop, stop_offset = _cut(segment, position, stop, size_max, whole_first, reader)
    if stop <= position:
        return None, start
    segment.hint(stop_offset, stop)
    return FileRegion(opened, position, stop - position), stop_offset


def _position(segment: Segment, offset: int, reader: Reader) -> int | None:
    position = segment.hints.get(offset)
    if position is None and (found := segment.position_of(offset, reader)):
        position = found[1]
    return position


def _cut(
    segment: Segment, position: int, stop: int, size_max: int, whole_first: bool, reader: Reader
) -> tuple[int, int]:
    """(position, offset) of the end of a slice of at most `size_max` bytes, between two batches."""
    indexed = segment.load_index().position_at_most(position + size_max)
    if indexed > position:
        return indexed, int.from_bytes(reader.read(indexed, 8), "big")
    cut, offset = position, -1
    for at, batch in scan(reader, start=position, end=stop):
        too_much = at + batch.size - position > size_max
        if too_much and not (whole_first and at == position):
            break
        cut, offset = at + batch.size, batch.last_offset + 1
        if too_much:
            break
    return cut, offset
