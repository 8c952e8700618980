"""Reading slices of whole batches. On the loop as long as the pages are in memory, otherwise in a thread.

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
    """The disk would have to be asked."""


class FileRegion:
    """So many bytes of a segment's file. It holds the file: deletion or compaction of the segment does not matter.

    Its bytes are below the high watermark, so nothing cuts them off but an unclean election; then what is read is short
    or fails its checksum at the reader, as with Kafka's sendfile.
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
        """None when the disk would have to be asked; fewer bytes when the file has become shorter."""
        return self._opened.file.read_now(self._position + offset, size)

    def read(self, offset: int, size: int) -> bytes:
        """The same, with the disk. Blocking."""
        return self._opened.file.read(self._position + offset, size)

    def on_failure(self, callback: Callable[[OSError], object]) -> None:
        self._on_failure = callback

    def failed(self, error: OSError) -> None:
        """Called by whoever reads it later and gets this error."""
        self._on_failure(error)


def _ignore(error: OSError) -> None:
    """For a reader that has its own way to report it."""


class Located(NamedTuple):
    """A slice that is not read yet."""

    region: FileRegion | None
    aborted: Sequence[tuple[int, int]]

    def read_now(self) -> Slice | None:
        """None when the disk would have to be asked."""
        if self.region is None:
            return Slice(b"", self.aborted)
        data = self.region.read_now(0, len(self.region))
        return None if data is None or len(data) < len(self.region) else Slice(data, self.aborted)

    def read(self) -> Slice:
        """The same, with the disk. Blocking."""
        return Slice(b"" if self.region is None else self.region.read(0, len(self.region)), self.aborted)


NOTHING = Located(None, ())


class HotReader:
    """A file, as far as it is in memory."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    def read(self, position: int, size: int) -> Buffer:
        data = self._file.read_now(position, size)
        if data is None or len(data) < size:
            raise Cold
        return data


class ReadableLog:
    """The part of a log that any thread may use while the event loop appends, rolls and cuts.

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
        """Whole batches from the one that holds `start`, all below `end`; b"" when there are none.

        At most `size_bytes_max`, but `whole_first` gives the first batch in any case. OFFSET_OUT_OF_RANGE. None when
        the disk would have to be asked: then call `read_cold` with the same arguments in a thread.
        """
        found = self.read_slice(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        return None if found is None else bytes(found.data)

    def read_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes:
        return bytes(
            self.read_slice_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first).data
        )

    def read_slice(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice | None:
        """The same as `read`, with the aborted transactions that such a reader must leave out."""
        found = self.locate(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        return None if found is None else found.read_now()

    def read_slice_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice:
        return self.locate_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first).read()

    def locate(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located | None:
        """What `read_slice` would read, to be read when it is sent. None: call `locate_cold` in a thread."""
        self._require_in_range(start)
        try:
            return _locate(self._segments, start, min(end, self.end_offset), size_bytes_max, whole_first, hot=True)
        except Cold:
            return None

    def locate_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located:
        """A segment may be deleted meanwhile: then it is located again among those that are left."""
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
        """The first record with this timestamp or a later one. Blocking."""
        return timestamps.offset_for_timestamp(self._segments.all, timestamp, start=self.start_offset)

    def max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp. Blocking."""
        return timestamps.max_timestamp(self._segments.all)


def _locate(segments: Segments, start: int, end: int, size_max: int, whole_first: bool, *, hot: bool) -> Located:
    """Cold, if `hot`, when the disk would have to be asked."""
    if start >= end:
        return NOTHING
    # The aborted transactions are taken from these too: compaction may replace them meanwhile.
    candidates = from_offset(segments.all, start)
    for number, segment in enumerate(candidates):
        found = _slice(segments, segment, start, end, size_max, whole_first, hot=hot)
        if found is not None:
            region, stop_offset = found
            return Located(region, _aborted(candidates[number:], start, stop_offset) if region is not None else ())
    return NOTHING


def _aborted(segments: Sequence[Segment], start: int, stop: int) -> list[tuple[int, int]]:
    """A marker may lie in a later segment than the records."""
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
    """The batches and the offset behind them; None when the segment has no batch that ends at or beyond `start`."""
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
    """(position, offset) where a slice of at most `size_max` bytes ends, between two batches."""
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
