"""Reading slices of whole batches. On the loop as long as the pages are in memory, otherwise in a thread."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import Code, KafkaError
from ottla.storage.scan import Reader, scan
from ottla.storage.segment import Segment
from ottla.system import Buffer, File

if TYPE_CHECKING:
    from ottla.storage.log import Log

__all__ = ["Cold", "Slice", "read", "read_cold"]


class Cold(Exception):
    """The disk would have to be asked."""


class Slice(NamedTuple):
    """Whole batches, and the aborted transactions among them: (producer id, first offset), by their first offsets."""

    data: Buffer
    aborted: Sequence[tuple[int, int]]


NOTHING = Slice(b"", ())


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


def read(log: "Log", *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice | None:
    try:
        return _read(log, start, min(end, log.end_offset), size_bytes_max, whole_first, hot=True)
    except Cold:
        return None


def read_cold(log: "Log", *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice:
    """A segment may be deleted meanwhile: then the question is asked again of those that are left."""
    while True:
        segments = log.segments
        try:
            return _read(log, start, min(end, log.end_offset), size_bytes_max, whole_first, hot=False)
        except FileNotFoundError:
            if segments is log.segments:
                raise


def _read(log: "Log", start: int, end: int, size_max: int, whole_first: bool, *, hot: bool) -> Slice:
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
            data, stop_offset = found
            return Slice(data, _aborted(segments[number:], start, stop_offset) if data else ())
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
) -> tuple[Buffer, int] | None:
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
        return b"", start
    data = reader.read(position, stop - position)
    segment.hint(stop_offset, stop)
    return data, stop_offset


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
