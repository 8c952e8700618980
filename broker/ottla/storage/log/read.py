"""Reading slices of whole batches. On the loop as long as the pages are in memory, otherwise in a thread.

`locate` finds a slice without reading it: the answer to a fetch is read when it is sent.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer, File
from ottla.storage.core.slice import Slice
from ottla.storage.directories.files import OpenFile
from ottla.storage.log.scan import Reader, scan
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

__all__ = ["Cold", "FileRegion", "Located", "locate", "locate_cold", "read", "read_cold"]


class Cold(Exception):
    """The disk would have to be asked."""


class FileRegion:
    """So many bytes of a segment's file. It holds the file: deletion or compaction of the segment does not matter.

    Its bytes are below the high watermark, so nothing cuts them off but an unclean election; then what is read is short
    or fails its checksum at the reader, as with Kafka's sendfile.
    """

    __slots__ = ("_opened", "_position", "_size", "failed")

    def __init__(self, opened: OpenFile, position: int, size: int) -> None:
        self._opened = opened
        self._position = position
        self._size = size
        self.failed: Callable[[OSError], object] = _ignore
        """Called by whoever reads it and gets this error."""

    def __len__(self) -> int:
        return self._size

    def read_now(self, offset: int, size: int) -> Buffer | None:
        """None when the disk would have to be asked; fewer bytes when the file has become shorter."""
        return self._opened.file.read_now(self._position + offset, size)

    def read(self, offset: int, size: int) -> bytes:
        """The same, with the disk. Blocking."""
        return self._opened.file.read(self._position + offset, size)


def _ignore(error: OSError) -> None:
    """For a reader that has its own way to report it."""


class Located(NamedTuple):
    """A slice that is not read yet."""

    region: FileRegion | None
    aborted: Sequence[tuple[int, int]]


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


def locate(log: "Log", *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located | None:
    """None when the disk would have to be asked."""
    try:
        return _locate(log, start, min(end, log.end_offset), size_bytes_max, whole_first, hot=True)
    except Cold:
        return None


def locate_cold(log: "Log", *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located:
    """A segment may be deleted meanwhile: then the question is asked again of those that are left."""
    while True:
        segments = log.segments
        try:
            return _locate(log, start, min(end, log.end_offset), size_bytes_max, whole_first, hot=False)
        except FileNotFoundError:
            if segments is log.segments:
                raise


def read(log: "Log", *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice | None:
    """None when the disk would have to be asked."""
    found = locate(log, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
    if found is None or found.region is None:
        return None if found is None else Slice(b"", found.aborted)
    data = found.region.read_now(0, len(found.region))
    return None if data is None or len(data) < len(found.region) else Slice(data, found.aborted)


def read_cold(log: "Log", *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice:
    found = locate_cold(log, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
    return Slice(b"" if found.region is None else found.region.read(0, len(found.region)), found.aborted)


def _locate(log: "Log", start: int, end: int, size_max: int, whole_first: bool, *, hot: bool) -> Located:
    if not log.start_offset <= start <= log.end_offset:
        raise KafkaError(
            Code.offset_out_of_range,
            f"Received request for offset {start} for partition {log.topic_partition}, but we only have log segments "
            f"in the range {log.start_offset} to {log.end_offset}.",
        )
    if start >= end:
        return NOTHING
    segments = log.segments_from(start)  # the aborted are looked up in these too: cleaning may replace them meanwhile
    for number, segment in enumerate(segments):
        found = _slice(log, segment, start, end, size_max, whole_first, hot=hot)
        if found is not None:
            region, stop_offset = found
            return Located(region, _aborted(segments[number:], start, stop_offset) if region is not None else ())
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
    log: "Log", segment: Segment, start: int, end: int, size_max: int, whole_first: bool, *, hot: bool
) -> tuple[FileRegion | None, int] | None:
    """The batches and the offset behind them; None when the segment has no batch that ends at or beyond `start`."""
    size = segment.size  # before next_offset: see Segment._note
    next_offset = segment.next_offset
    if segment.index is None:
        if hot:
            raise Cold
        log.keep_index(segment)
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
