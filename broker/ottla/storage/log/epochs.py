"""The start offset of each leader epoch of one log, and Kafka's `leader-epoch-checkpoint` file.

Entries are an immutable tuple that every change replaces, so any thread may read them. Changes stay in memory until
`save`, which a flush runs before it advances the recovery point: entries lost in a crash are found again in the batches
beyond that point.
"""

from bisect import bisect_right
from threading import Lock

from ottla.ports import Disk

__all__ = ["EPOCHS_FILE", "LeaderEpochs"]

EPOCHS_FILE = "leader-epoch-checkpoint"
UNDEFINED = -1

Entry = tuple[int, int]


class LeaderEpochs:
    """(epoch, first offset) in ascending order of both. Invariant: `latest` is the last entry's epoch, or -1."""

    def __init__(self, path: str, entries: tuple[Entry, ...] = ()) -> None:
        self.path = path
        self.entries = entries
        self.latest = entries[-1][0] if entries else UNDEFINED
        self._saved = entries
        self._saving = Lock()  # a flush in a thread and a roll may save at the same time

    @classmethod
    def load(cls, disk: Disk, path: str) -> "LeaderEpochs":
        return cls(path, _parse(path, disk.read_file(path).decode()) if disk.exists(path) else ())

    def save(self, disk: Disk) -> None:
        """Write the file durably if anything changed."""
        with self._saving:
            entries = self.entries
            if entries == self._saved:
                return
            lines = ["0", str(len(entries)), *(f"{epoch} {start}" for epoch, start in entries)]
            disk.replace_file(self.path, ("\n".join(lines) + "\n").encode())
            self._saved = entries

    def assign(self, epoch: int, start: int) -> None:
        """A batch of this epoch starts at `start`; conflicting entries are dropped."""
        if self.entries and epoch == self.latest and start >= self.entries[-1][1]:
            return
        kept = tuple(entry for entry in self.entries if entry[0] < epoch and entry[1] < start)
        self._become((*kept, (epoch, start)))

    def truncate_end(self, end: int) -> None:
        """Drop epochs that start at or beyond the log's new end."""
        self._become(tuple(entry for entry in self.entries if entry[1] < end))

    def truncate_start(self, start: int) -> None:
        """The epoch that contains `start` now starts there; earlier ones are dropped."""
        before = [entry for entry in self.entries if entry[1] <= start]
        if before:
            self._become(((before[-1][0], start), *self.entries[len(before) :]))

    def clear(self) -> None:
        self._become(())

    def _become(self, entries: tuple[Entry, ...]) -> None:
        self.entries = entries
        self.latest = entries[-1][0] if entries else UNDEFINED

    def end_offset_for(self, epoch: int, end_offset: int) -> Entry:
        """(epoch, end offset) of the largest epoch not above this one, or (-1, -1) when unknown, as Kafka answers."""
        if epoch == UNDEFINED:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, end_offset
        entries = self.entries
        above = bisect_right(entries, epoch, key=_epoch_of)
        if above == len(entries):
            return UNDEFINED, UNDEFINED
        return (entries[above - 1][0] if above else epoch), entries[above][1]

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of the record at this offset, or -1."""
        entries = self.entries
        number = bisect_right(entries, offset, key=_start_of) - 1
        return entries[number][0] if number >= 0 else UNDEFINED


def _epoch_of(entry: Entry) -> int:
    return entry[0]


def _start_of(entry: Entry) -> int:
    return entry[1]


def _parse(path: str, text: str) -> tuple[Entry, ...]:
    """ValueError when the file is not Kafka's format 0."""
    version, count, *lines = text.split("\n")
    rows = [line.split() for line in lines if line]
    if version.strip() != "0" or int(count) != len(rows) or any(len(row) != 2 for row in rows):
        raise ValueError(f"{path} is not a leader epoch checkpoint of version 0 with {count} entries")
    return tuple((int(epoch), int(start)) for epoch, start in rows)
