"""Sparse indexes of a segment, in Kafka's file formats: offset → position (.index) and timestamp → offset (.timeindex).

The active segment's entries are in arrays; `write` (at roll and close) writes new ones to the file, because recovery
rebuilds them after a crash. A sealed segment's arrays are loaded on demand and may be dropped at any time. One writer
(the loop); threads may search at the same time: both arrays only grow, and a search uses a length that it read once.
"""

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct

from ottla.ports import Disk

__all__ = ["OffsetIndex", "TimeIndex"]

TIME_ENTRY = Struct(">qI")
OFFSET_ENTRY_BYTES = 8
NO_TIMESTAMP = -1


class OffsetIndex:
    """Entry: last offset of a batch relative to the base (4 bytes), start position of that batch (4 bytes)."""

    __slots__ = ("offsets", "path", "positions", "written")

    def __init__(self, path: str) -> None:
        self.path = path
        self.offsets = array("I")
        self.positions = array("I")
        self.written = 0  # number of entries in the file

    def __len__(self) -> int:
        return len(self.offsets)

    def append(self, offset: int, position: int) -> None:
        # Positions first: a searching thread uses the number of offsets.
        self.positions.append(position)
        self.offsets.append(offset)

    def floor(self, offset: int) -> tuple[int, int]:
        """(number, position) of the last indexed batch that ends at or before this relative offset, or (-1, 0)."""
        number = bisect_right(self.offsets, offset) - 1
        return number, (self.positions[number] if number >= 0 else 0)

    def position_at_most(self, position: int) -> int:
        """The last indexed position not beyond this one; 0 if there is none."""
        number = bisect_right(self.positions, position) - 1
        return self.positions[number] if number >= 0 else 0

    def truncate(self, size: int) -> None:
        """Drop entries at or beyond this position; the file keeps them until `cut_file` or `write`."""
        keep = bisect_left(self.positions, size)
        self.offsets, self.positions = self.offsets[:keep], self.positions[:keep]
        self.written = min(self.written, keep)

    def cut_file(self, disk: Disk) -> None:
        """Blocking."""
        _cut(disk, self.path, self.written * OFFSET_ENTRY_BYTES)

    def write(self, disk: Disk) -> bool:
        """Write new entries to the file, not durably. Returns whether there were any. An empty index has an empty
        file."""
        is_new = len(self) > self.written
        pairs = array("I", bytes((len(self) - self.written) * OFFSET_ENTRY_BYTES))
        pairs[0::2] = self.offsets[self.written :]
        pairs[1::2] = self.positions[self.written :]
        pairs.byteswap()
        _write(disk, self.path, self.written * OFFSET_ENTRY_BYTES, pairs.tobytes())
        self.written = len(self)
        return is_new

    @classmethod
    def load(cls, disk: Disk, path: str) -> "OffsetIndex":
        """ValueError when the file is no valid index, OSError when it cannot be read."""
        data = disk.read_file(path)
        pairs = array("I")
        pairs.frombytes(data)  # ValueError for a torn entry
        if len(pairs) % 2:
            raise ValueError(f"{path} holds half an entry")
        pairs.byteswap()
        index = cls(path)
        index.offsets, index.positions = pairs[0::2], pairs[1::2]
        index.written = len(index)
        if index.written > 1 and index.positions[-1] <= index.positions[0]:
            raise ValueError(f"{path} is out of order")
        return index


class TimeIndex:
    """Entry: largest timestamp so far (8 bytes), relative last offset of the earliest batch that has it (4 bytes)."""

    __slots__ = ("offsets", "path", "timestamps", "written")

    def __init__(self, path: str) -> None:
        self.path = path
        self.timestamps = array("q")
        self.offsets = array("I")
        self.written = 0

    def __len__(self) -> int:
        return len(self.timestamps)

    def append(self, timestamp: int, offset: int) -> None:
        """Append unless the timestamp is not larger than the last."""
        if timestamp > (self.timestamps[-1] if self.timestamps else NO_TIMESTAMP):
            self.offsets.append(offset)
            self.timestamps.append(timestamp)

    def last(self, base_offset: int) -> tuple[int, int]:
        """(largest timestamp, offset) so far; -1 and the base if there is none."""
        return (self.timestamps[-1], base_offset + self.offsets[-1]) if self.timestamps else (NO_TIMESTAMP, base_offset)

    def floor(self, timestamp: int) -> int:
        """A relative offset before which all timestamps are smaller; 0 if none is known."""
        number = bisect_right(self.timestamps, timestamp) - 1
        return self.offsets[number] if number >= 0 else 0

    def kept_below(self, offset: int) -> int:
        """The number of entries below this relative offset: those that a truncation there keeps."""
        return bisect_left(self.offsets, offset)

    def truncate(self, offset: int) -> None:
        """Drop entries at or beyond this relative offset; the file keeps them until `cut_file` or `write`."""
        keep = self.kept_below(offset)
        self.timestamps, self.offsets = self.timestamps[:keep], self.offsets[:keep]
        self.written = min(self.written, keep)

    def cut_file(self, disk: Disk) -> None:
        """Blocking."""
        _cut(disk, self.path, self.written * TIME_ENTRY.size)

    def write(self, disk: Disk) -> bool:
        is_new = len(self) > self.written
        new = b"".join(map(TIME_ENTRY.pack, self.timestamps[self.written :], self.offsets[self.written :]))
        _write(disk, self.path, self.written * TIME_ENTRY.size, new)
        self.written = len(self)
        return is_new

    @classmethod
    def load(cls, disk: Disk, path: str) -> "TimeIndex":
        data = disk.read_file(path)
        if len(data) % TIME_ENTRY.size:
            raise ValueError(f"{path} holds part of an entry")
        index = cls(path)
        for timestamp, offset in TIME_ENTRY.iter_unpack(data):
            index.timestamps.append(timestamp)
            index.offsets.append(offset)
        index.written = len(index)
        if index.written > 1 and index.timestamps[-1] < index.timestamps[0]:
            raise ValueError(f"{path} is out of order")
        return index


def _write(disk: Disk, path: str, position: int, data: bytes) -> None:
    file = disk.open(path, create=True)
    try:
        if file.size() > position:
            file.truncate(position)
        if data:
            file.append([data])
    finally:
        file.close()


def _cut(disk: Disk, path: str, size: int) -> None:
    if not disk.exists(path):
        return  # an active segment has no index files yet
    file = disk.open(path)
    try:
        if file.size() > size:
            file.truncate(size)
    finally:
        file.close()
