"""How much of a log is on disk, and what the next flush has to write.

A flush runs in a thread while the loop appends, rolls and truncates.
"""

import contextlib
from threading import Lock
from typing import NamedTuple

from ottla.ports import Disk
from ottla.storage.core.producers import Producer, Producers
from ottla.storage.log import snapshots
from ottla.storage.log.epochs import LeaderEpochs
from ottla.storage.log.segment import Segment
from ottla.storage.log.segment_files import sync_path
from ottla.storage.log.segments import Segments

__all__ = ["Durability"]

PRODUCERS_AT_ONCE_MAX = 1000  # writing more takes too long for the loop
BYTES_PER_SNAPSHOT_BYTE = 4


class Waiting(NamedTuple):
    """A snapshot for the next flush to write."""

    offset: int
    producers: list[Producer]


class Durability:
    """Invariant: flushed_offset <= promised_offset.

    flushed_offset    everything below it is on disk: the recovery point for the checkpoint
    promised_offset   the highest recovery point that a checkpoint may have, also of a log that was truncated since
    snapshot_offset   of the latest producer snapshot
    cuts              number of truncations: a flush that started before one does not advance flushed_offset
    """

    def __init__(self, folder: str, disk: Disk, *, is_new: bool) -> None:
        """`is_new`: the folder itself is not durable yet."""
        self.flushed_offset = 0
        self.promised_offset = 0
        self.snapshot_offset = 0
        self.cuts = 0
        self._folder = folder
        self._disk = disk
        self._is_new = is_new
        self._folder_changed = False
        self._unsynced: list[str] = []  # snapshots that the next flush syncs
        self._waiting: Waiting | None = None
        self._bytes_since_snapshot = 0
        self._claiming = Lock()  # held for a few assignments: a flush advances either before a truncation or not at all
        self._failure: OSError | None = None

    # changes of the log

    def recovered(self, *, flushed_offset: int, promised_offset: int) -> None:
        self.flushed_offset = flushed_offset
        self.promised_offset = max(flushed_offset, promised_offset)

    def folder_changed(self) -> None:
        """The next flush syncs the folder."""
        self._folder_changed = True

    def cut_to(self, offset: int) -> None:
        """The log was truncated."""
        with self._claiming:
            self.cuts += 1
            self.flushed_offset = min(self.flushed_offset, offset)
            self._waiting = None

    def moved_to(self, folder: str) -> None:
        self._folder = folder

    def write_snapshot(self, producers: Producers) -> None:
        """Write a snapshot of the producers at this offset, unless it exists."""
        offset = producers.end_offset
        if offset > self.snapshot_offset:
            self._unsynced.append(snapshots.write(self._disk, self._folder, offset, producers.by_id.values()))
            self._folder_changed = True
            self.snapshot_offset = offset
            self._bytes_since_snapshot = 0
            self._waiting = None

    def rolled(self, producers: Producers, *, sealed_bytes: int, start_offset: int) -> None:
        """The same at the start of a segment. Many producers are only frozen here, and the next flush writes them; not
        before so much log was written that their snapshot is a small part of it, unless the log has no other snapshot.
        Recovery reads that much more."""
        count = len(producers.by_id)
        self._bytes_since_snapshot += sealed_bytes
        if count <= PRODUCERS_AT_ONCE_MAX:
            self.write_snapshot(producers)
            return
        is_due = self._bytes_since_snapshot >= BYTES_PER_SNAPSHOT_BYTE * snapshots.ENTRY_BYTES * count
        offset = producers.end_offset
        if offset > self.snapshot_offset and (is_due or self.snapshot_offset <= start_offset):
            with self._claiming:
                self._waiting = Waiting(offset, producers.freeze())
            self.snapshot_offset = offset
            self._bytes_since_snapshot = 0

    def newest_snapshot_is(self, offset: int) -> None:
        self.snapshot_offset = offset

    def sync_promised(self, sealed: Segment, epochs: LeaderEpochs) -> None:
        """Sync a segment that a checkpoint has as durable once it is sealed, with its indexes: it was flushed up to its
        end, or was truncated and has grown again since that checkpoint."""
        try:
            sealed.sync(with_indexes=True)
            epochs.save(self._disk)
        except OSError as failure:
            self._failure = failure
            raise

    # flushing, in a thread

    def needs_flush(self, end: int) -> bool:
        return self.flushed_offset < end or self._folder_changed or bool(self._unsynced) or self._waiting is not None

    def flush(self, segments: Segments, epochs: LeaderEpochs, *, end: int, cuts: int) -> int:
        """Make everything below `end` durable. Returns the durable offset. `cuts` was read before `end`.

        Data first, then indexes of sealed segments, snapshots and epochs, so that recovery finds all it needs below the
        returned offset. The active segment's indexes are not written: recovery rebuilds the segment of that offset. A
        failed fsync may have dropped pages, so the failure is final: every later call raises it again.
        """
        if self._failure is not None:
            raise self._failure
        try:
            self._write_waiting(cuts)
            self._sync(segments, epochs, end)
        except OSError as failure:
            self._failure = failure
            raise
        # Truncated meanwhile: synced bytes may have been removed and replaced by others.
        # Under the lock: a truncation between check and assignment would leave flushed_offset above the log's end.
        with self._claiming:
            if cuts == self.cuts and end > self.flushed_offset:
                self.flushed_offset = end
                self.promised_offset = max(self.promised_offset, end)
            return self.flushed_offset

    def _write_waiting(self, cuts: int) -> None:
        """The snapshot gets its name when it is complete, unless the log was truncated meanwhile: it would be wrong
        then."""
        with self._claiming:
            waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        with contextlib.suppress(FileNotFoundError):  # the folder was moved away
            written = snapshots.write(
                self._disk, self._folder, waiting.offset, waiting.producers, suffix=snapshots.UNFINISHED
            )
            with self._claiming:
                if cuts == self.cuts:
                    target = written.removesuffix(snapshots.UNFINISHED)
                    self._disk.rename(written, target)
                    self._unsynced.append(target)
                    self._folder_changed = True
                    return
            self._disk.remove(written)

    def _sync(self, segments: Segments, epochs: LeaderEpochs, end: int) -> None:
        flushed = self.flushed_offset
        for segment in segments.all:
            if segment.next_offset > flushed and segment.base_offset < end:
                self._sync_segment(segment, segments)
        while self._unsynced:
            sync_path(self._disk, self._unsynced.pop())
        epochs.save(self._disk)
        if self._folder_changed:
            self._folder_changed = False
            self._disk.sync_folder(self._folder)
        if self._is_new:
            self._is_new = False
            self._disk.sync_folder(self._folder.rstrip("/").rpartition("/")[0])

    def _sync_segment(self, segment: Segment, segments: Segments) -> None:
        try:
            segment.sync()
        except FileNotFoundError:
            if segment in segments.all:  # otherwise it was deleted meanwhile
                raise
