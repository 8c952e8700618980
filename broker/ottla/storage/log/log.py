"""A partition's log: segments in a folder, in Kafka's own formats.

Who may call what: the event loop alone changes a log (append, roll, truncate, retention). Threads may at the same
time run `read_cold`, `offset_for_timestamp`, `max_timestamp`, `expired_segments`, a plan to truncate and one `flush`.
No lock guards this: `segments` is a tuple that every change replaces, a segment's `size` moves only after its bytes are
written, open files are kept by reference until their last user drops them, and what a flush finds changed under it
(`_truncations`) it does not claim.

What renames or removes the files of segments (truncation, retention, compaction) does so in a thread, after or before
the loop has changed the log. `changing` is held meanwhile, so that there is one such change at a time, and by whoever
changes the partition's role or moves its folder. Appends, rolls and flushes go on, save in a truncation.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from threading import Lock

from ottla.ports import Buffer
from ottla.storage.core.producers import Producers
from ottla.storage.core.settings import LogSettings
from ottla.storage.core.slice import Slice
from ottla.storage.core.verification import Ticket
from ottla.storage.directories.files import FileCache
from ottla.storage.log import append, read, recovery, replace, retention, snapshots, timestamps, truncation
from ottla.storage.log.append import Appended
from ottla.storage.log.epochs import EPOCHS_FILE, LeaderEpochs
from ottla.storage.log.read import Located
from ottla.storage.log.segment import Segment
from ottla.storage.log.segment_files import sync_path
from ottla.storage.log.timestamps import TimestampOffset
from ottla.system import System
from ottla.wire.batch import Batch

__all__ = ["Appended", "Located", "Log", "TimestampOffset"]

INDEXES_KEPT_MAX = 4  # of sealed segments, per log: readers of old data come back to the same few


class Log:
    """Invariants: start_offset <= end_offset; flushed_offset <= end_offset; the last segment is the active one."""

    def __init__(self, folder: str, *, settings: LogSettings, system: System, files: FileCache) -> None:
        self.folder = folder
        self.topic_partition = folder.rstrip("/").rpartition("/")[2]
        self.settings = settings
        self.system = system
        self.clock = system.clock
        self.disk = system.disk
        self.files = files
        self.segments: tuple[Segment, ...] = ()
        self.active: Segment
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.producers = Producers(self.topic_partition)
        self.epochs = LeaderEpochs(f"{folder}/{EPOCHS_FILE}")
        self.snapshot_offset = 0  # of the newest producer snapshot
        self.doomed: list[tuple[int, str]] = []  # (when to remove it, path)
        self._unsynced: list[str] = []  # snapshots that the next flush makes durable
        self.is_new = False  # the folder's own name is not durable yet
        self._folder_changed = False
        self._truncations = 0
        self.promised_offset = 0
        """The furthest recovery point that a checkpoint may name: also where the log was once, before it was cut."""
        self._flush_failure: OSError | None = None
        self._kept: list[Segment] = []
        self._kept_lock = Lock()
        self.changing = asyncio.Lock()

    @classmethod
    def open(
        cls,
        folder: str,
        *,
        settings: LogSettings,
        system: System,
        files: FileCache,
        clean: bool,
        log_start: int = 0,
        recovery_point: int = 0,
        cleaned_to: int | None = None,
    ) -> "Log":
        """Open or create. Blocking. OSError when a file cannot be read: nothing is changed then.

        Unless the last stop was clean, segments from the recovery point on are verified, and the log ends before the
        first byte that is not a sound batch.
        """
        log = cls(folder, settings=settings, system=system, files=files)
        recovery.load(log, clean=clean, log_start=log_start, recovery_point=recovery_point, cleaned_to=cleaned_to)
        return log

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """As if all were replicated."""
        return max(self.producers.last_stable_offset(self.end_offset), self.start_offset)

    def stable_below(self, high_watermark: int) -> int:
        """The last stable offset. Never before the log's start: an open transaction's first records may be deleted."""
        self.producers.replicated_to(high_watermark)
        return max(self.producers.last_stable_offset(high_watermark), min(self.start_offset, high_watermark))

    # Appending and reading

    def append(
        self, batch: Batch, *, leader_epoch: int, from_client: bool = True, ticket: Ticket | None = None
    ) -> Appended:
        """Append a checked batch as leader. A refused or failed one (KafkaError, OSError) leaves nothing behind.

        The first batch of a transaction needs the `ticket` with which its transaction was verified.
        """
        return append.append(self, batch, leader_epoch=leader_epoch, from_client=from_client, ticket=ticket)

    def append_replicated(self, data: Buffer, *, leader_epoch: int) -> None:
        """Append batches as the leader of this epoch has them; offsets and epochs must not go back.

        None of them is written when one is refused (CORRUPT_MESSAGE); a failing disk (OSError) may keep the first ones.
        """
        append.append_replicated(self, data, leader_epoch=leader_epoch)

    def read(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes | None:
        """Whole batches from the one that holds `start`, all below `end`; b"" when there are none.

        At most `size_bytes_max`, save that `whole_first` gives the first batch in any case. OFFSET_OUT_OF_RANGE. None
        when the disk would have to be asked: then call `read_cold` with the same arguments in a thread.
        """
        found = read.read(self, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        return None if found is None else bytes(found.data)

    def read_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes:
        return bytes(
            self.read_slice_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first).data
        )

    def read_slice(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice | None:
        """The same as `read`, with the aborted transactions that such a reader must leave out."""
        return read.read(self, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

    def read_slice_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice:
        return read.read_cold(self, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

    def locate(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located | None:
        """What `read_slice` would read, to be read when it is sent. None: call `locate_cold` in a thread."""
        return read.locate(self, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

    def locate_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located:
        return read.locate_cold(self, start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record with this timestamp or a later one. Blocking."""
        return timestamps.offset_for_timestamp(self, timestamp)

    def max_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp. Blocking."""
        return timestamps.max_timestamp(self)

    def take_note(self, batch: Batch, *, base_offset: int, timestamp: int) -> None:
        """The producers learn of a batch that was appended to the active segment."""
        ended = self.producers.update(batch, base_offset=base_offset, timestamp=timestamp)
        if ended is not None and ended.aborted:
            self._folder_changed = True
            self.active.note_aborted(ended.for_index())

    def segments_from(self, offset: int) -> Sequence[Segment]:
        """The segment that holds this offset and those after it."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return segments[-1:]
        return segments[max(0, bisect_right(segments, offset, key=_base_offset) - 1) :]

    def keep_index(self, segment: Segment) -> None:
        """Load a sealed segment's index and keep it for a while, at the expense of one not asked for lately."""
        segment.load_index()
        with self._kept_lock:
            kept = [other for other in self._kept if other is not segment]
            for other in kept[: -INDEXES_KEPT_MAX + 1]:
                other.unload()
            self._kept = [*kept[-INDEXES_KEPT_MAX + 1 :], segment]

    # Rolling, flushing, closing

    def roll(self, base_offset: int | None = None) -> Segment:
        """Begin a new segment, at the log's end unless told otherwise. An active one that begins there stays."""
        base = self.end_offset if base_offset is None else base_offset
        active = self.active
        if active.base_offset == base:
            return active
        active.write_indexes()
        if base <= self.promised_offset:
            self._keep_promise(active)
        segment = self.new_segment(base)
        if active.size == 0:
            self.segments = self.segments[:-1]
            retention.doom(self, [active])
        active.sealed = True
        self.segments = (*self.segments, segment)
        self.active = segment
        self.keep_index(active)
        self.producers.end_offset = base
        self.write_snapshot()
        return segment

    def _keep_promise(self, segment: Segment) -> None:
        """A checkpoint calls this segment durable once it is sealed, indexes and all: it was flushed up to its end, or
        was cut and has grown again since that checkpoint."""
        try:
            segment.sync(with_indexes=True)
            self.epochs.save(self.disk)
        except OSError as failure:
            self._flush_failure = failure
            raise

    def new_segment(self, base_offset: int) -> Segment:
        segment = self.prepare_segment(base_offset)
        segment.create()
        return segment

    def prepare_segment(self, base_offset: int) -> Segment:
        """A segment without its file yet."""
        jitter_max = min(self.settings.segment_jitter_ms, self.settings.segment_ms)
        jitter = self.system.random.randrange(jitter_max) if jitter_max > 0 else 0
        now_ms = self.clock.wall_ms()
        self._folder_changed = True
        return Segment(self.folder, base_offset, files=self.files, created_ms=now_ms, jitter_ms=jitter)

    def folder_changed(self) -> None:
        """The next flush makes the names in the folder durable."""
        self._folder_changed = True

    def write_snapshot(self) -> None:
        """Keep the producers as they are at this offset, unless that was done already."""
        offset = self.producers.end_offset
        if offset > self.snapshot_offset:
            path = snapshots.write(self.disk, self.folder, offset, self.producers.by_id.values())
            self._unsynced.append(path)
            self._folder_changed = True
            self.snapshot_offset = offset

    def flush_sealed(self) -> int:
        """The same for all but the active segment: what Kafka does in the background after a roll."""
        return self.flush(sealed_only=True)

    def flush(self, *, sealed_only: bool = False) -> int:
        """Make everything up to the present end durable, and say how far the log now is. Blocking; in a thread.

        Data first, then indexes of sealed segments, snapshots and epochs, so that recovery finds all it needs below
        the point returned. The active segment's indexes can wait: recovery rebuilds the segment of that point anyway.
        A failed fsync may have dropped pages for good, so the failure is final: every later call raises it again.
        """
        if self._flush_failure is not None:
            raise self._flush_failure
        try:
            return self._flush(sealed_only)
        except OSError as failure:
            self._flush_failure = failure
            raise

    def _flush(self, sealed_only: bool) -> int:
        truncations, flushed, active = self._truncations, self.flushed_offset, self.active
        end = active.base_offset if sealed_only else self.end_offset
        for segment in self.segments:
            if segment.next_offset > flushed and segment.base_offset < end:
                self._sync(segment)
        while self._unsynced:
            sync_path(self.disk, self._unsynced.pop())
        self.epochs.save(self.disk)
        if self._folder_changed:
            self._folder_changed = False
            self.disk.sync_folder(self.folder)
        if self.is_new:
            self.is_new = False
            self.disk.sync_folder(self.folder.rstrip("/").rpartition("/")[0])
        if truncations == self._truncations and end > self.flushed_offset:
            self.flushed_offset = end
            self.promised_offset = max(self.promised_offset, end)
        return self.flushed_offset

    def _sync(self, segment: Segment) -> None:
        try:
            segment.sync()
        except FileNotFoundError:
            if segment in self.segments:  # otherwise it was deleted meanwhile
                raise

    def close(self, clean: bool = True) -> None:
        """Leave files that a clean `open` trusts without a scan; if not `clean`, just let go of them. Blocking."""
        if clean:
            self.active.write_indexes()
            if self.active.indexes_unsynced:
                self.active.sync_indexes()
            self.write_snapshot()
            if self.flushed_offset < self.end_offset or self._folder_changed or self._unsynced:
                self.flush()
            self.epochs.save(self.disk)
        for segment in self.segments:
            self.files.forget(segment.handle)

    def move_to(self, folder: str) -> None:
        """Rename the folder. Whoever still reads must not find a newer topic's files under the old name."""
        self.disk.rename(self.folder, folder)
        self.folder = folder
        for segment in self.segments:
            segment.moved_to(folder)

    # Cutting off either end

    def truncate_to(self, offset: int) -> None:
        """Let the log end at `offset`, or before the batch that holds it. Producers and epochs go back with it.

        Blocking, up to seconds: the loop takes the steps of truncation.py instead.
        """
        truncation.truncate(self, truncation.plan(self, offset))

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and begin anew at `offset`. Blocking."""
        truncation.truncate(self, truncation.plan_fresh_start(self, offset))

    def ends_at(self, offset: int) -> None:
        """It was cut in memory: a flush that is under way claims nothing, epochs go back."""
        self._truncations += 1
        self.end_offset = offset
        self.flushed_offset = min(self.flushed_offset, offset)
        self.epochs.truncate_end(offset)

    def advance_start(self, offset: int) -> None:
        """Let the log begin at `offset` if it began before. OFFSET_OUT_OF_RANGE.

        Segments wholly below stay in it until `delete_below_start` or retention takes them out.
        """
        retention.advance_start(self, offset)

    @property
    def has_segments_below_start(self) -> bool:
        return len(self.segments) > 1 and self.segments[0].next_offset <= self.start_offset

    def delete_below_start(self) -> None:
        """Blocking."""
        retention.doom(self, retention.take_below_start(self))

    def expired_segments(self, now_ms: int, high_watermark: int) -> list[Segment]:
        """Those that retention would delete now, oldest first. Blocking the first time; in a thread."""
        return retention.expired_segments(self, now_ms, high_watermark)

    def delete_expired(self, now_ms: int, high_watermark: int) -> list[Segment]:
        """Delete them: renamed now, removed by `purge` after file.delete.delay.ms. Blocking."""
        expired = retention.take_expired(self, now_ms, high_watermark)
        retention.doom(self, expired)
        return expired

    def purge(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose time has come. Blocking."""
        self.remove(retention.due_for_removal(self, now_ms))

    def remove(self, paths: Sequence[str]) -> None:
        """Blocking."""
        for path in paths:
            self.disk.remove(path)

    def replace(self, old: Sequence[Segment], new_base: int) -> Segment:
        """Swap `<new_base>.log.cleaned`, which must be durable, in for these, safe against a crash at any point.

        Its indexes are made anew when somebody reads it, if they do not exist as `.cleaned` beside it. Blocking.
        """
        new = replace.exchange(self, old, new_base)
        replace.take_over(self, old, new)
        return new


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
