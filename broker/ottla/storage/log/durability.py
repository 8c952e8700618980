"""How much of a log is on the disk, and what the next flush has to bring there.

A flush runs in a thread while the loop appends, rolls and cuts.
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

PRODUCERS_AT_ONCE_MAX = 1000  # more take longer to write than the loop may wait
BYTES_PER_SNAPSHOT_BYTE = 4


class Waiting(NamedTuple):
    """A snapshot for the next flush to write."""

    offset: int
    producers: list[Producer]


class Durability:
    """Invariant: flushed_offset <= promised_offset.

    flushed_offset    everything below it is on the disk: the recovery point that a checkpoint names
    promised_offset   the furthest recovery point that a checkpoint may have named: also of a log that was cut since
    snapshot_offset   of the newest producer snapshot
    cuts              how often the log was cut: a flush that began before a cut claims nothing
    """

    def __init__(self, folder: str, disk: Disk, *, is_new: bool) -> None:
        """`is_new`: the folder's own name is not durable yet."""
        self.flushed_offset = 0
        self.promised_offset = 0
        self.snapshot_offset = 0
        self.cuts = 0
        self._folder = folder
        self._disk = disk
        self._is_new = is_new
        self._folder_changed = False
        self._unsynced: list[str] = []  # snapshots that the next flush makes durable
        self._waiting: Waiting | None = None
        self._bytes_since_snapshot = 0
        self._claiming = Lock()  # for a few assignments: a flush claims either before a cut or not at all
        self._failure: OSError | None = None

    # what happens to the log

    def recovered(self, *, flushed_offset: int, promised_offset: int) -> None:
        self.flushed_offset = flushed_offset
        self.promised_offset = max(flushed_offset, promised_offset)

    def folder_changed(self) -> None:
        """The next flush makes the names in the folder durable."""
        self._folder_changed = True

    def cut_to(self, offset: int) -> None:
        """After the log's end was moved back."""
        with self._claiming:
            self.cuts += 1
            self.flushed_offset = min(self.flushed_offset, offset)
            self._waiting = None

    def moved_to(self, folder: str) -> None:
        self._folder = folder

    def write_snapshot(self, producers: Producers) -> None:
        """Keep the producers as they are at this offset, unless that was done already."""
        offset = producers.end_offset
        if offset > self.snapshot_offset:
            self._unsynced.append(snapshots.write(self._disk, self._folder, offset, producers.by_id.values()))
            self._folder_changed = True
            self.snapshot_offset = offset
            self._bytes_since_snapshot = 0
            self._waiting = None

    def rolled(self, producers: Producers, *, sealed_bytes: int, start_offset: int) -> None:
        """The same where a segment begins. Many producers are only frozen here, and the next flush writes them; not
        before so much log was written that their snapshot is a small part of it, unless none is left in the log.
        Recovery reads as much more."""
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

    def keep_promise(self, sealed: Segment, epochs: LeaderEpochs) -> None:
        """A checkpoint calls this segment durable once it is sealed, indexes and all: it was flushed up to its end, or
        was cut and has grown again since that checkpoint."""
        try:
            sealed.sync(with_indexes=True)
            epochs.save(self._disk)
        except OSError as failure:
            self._failure = failure
            raise

    # flushing, in a thread

    def owes_flush(self, end: int) -> bool:
        return self.flushed_offset < end or self._folder_changed or bool(self._unsynced) or self._waiting is not None

    def flush(self, segments: Segments, epochs: LeaderEpochs, *, end: int, cuts: int) -> int:
        """Make everything below `end` durable; how far the log is durable then. `cuts` was read before `end` was.

        Data first, then indexes of sealed segments, snapshots and epochs, so that recovery finds all it needs below
        the point returned. The active segment's indexes can wait: recovery rebuilds the segment of that point anyway.
        A failed fsync may have dropped pages for good, so the failure is final: every later call raises it again.
        """
        if self._failure is not None:
            raise self._failure
        try:
            self._write_waiting(cuts)
            self._sync(segments, epochs, end)
        except OSError as failure:
            self._failure = failure
            raise
        # A cut meanwhile: what was synced may have been cut off, and other bytes may stand there already.
        # Under the lock: a cut between the check and the claim would leave the claim above the log's end.
        with self._claiming:
            if cuts == self.cuts and end > self.flushed_offset:
                self.flushed_offset = end
                self.promised_offset = max(self.promised_offset, end)
            return self.flushed_offset

    def _write_waiting(self, cuts: int) -> None:
        """It gets its name when it is whole, and not when the log was cut meanwhile: other batches may come there."""
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
