"""Appends to a log, as leader or as follower; rolls and flushes. One write per append.

On the event loop, except `flush` and `close`, which block.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.ports import Buffer
from ottla.storage.core.settings import LogSettings
from ottla.storage.core.verification import Ticket
from ottla.storage.directories.files import FileCache
from ottla.storage.log.append_checks import (
    NO_TIMESTAMP,
    check_replicated,
    check_timestamps,
    check_transaction,
    too_large,
)
from ottla.storage.log.reading import ReadableLog
from ottla.storage.log.recovery import Recovery
from ottla.storage.log.segment import RELATIVE_OFFSET_MAX, Segment
from ottla.storage.log.segments import Segments, must_roll, new_segment
from ottla.system import System
from ottla.wire.batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    OVERHEAD_BYTES,
    STAMP,
    STAMP_BYTES,
    TRANSACTIONAL_BIT,
    Batch,
    iterate,
    stamp_append_time,
)

__all__ = ["Appended", "WritableLog"]

PART_OF_TRANSACTION = CONTROL_BIT | TRANSACTIONAL_BIT


class Appended(NamedTuple):
    """The result of an append. `log_append_time` is -1 unless the log sets it; `must_flush`: flush.messages is
    reached."""

    base_offset: int
    last_offset: int
    log_append_time: int
    start_offset: int
    duplicate: bool
    must_flush: bool


class WritableLog(ReadableLog):
    """Invariant: flushed_offset <= end_offset."""

    def __init__(self, found: Recovery, *, settings: LogSettings, system: System, files: FileCache) -> None:
        super().__init__(
            found.topic_partition,
            Segments(found.segments),
            start_offset=found.start_offset,
            end_offset=found.end_offset,
        )
        self.folder = found.folder
        self.settings = settings
        self.clock = system.clock
        self.disk = system.disk
        self.files = files
        self.producers = found.producers
        self.epochs = found.epochs
        self._system = system
        self._durability = found.durability
        self._removals = found.removals

    def configure(self, settings: LogSettings) -> None:
        """New settings of the topic; they apply from the next append on."""
        self.settings = settings

    @property
    def last_stable_offset(self) -> int:
        """The last stable offset if everything were replicated."""
        return max(self.producers.last_stable_offset(self.end_offset), self.start_offset)

    def stable_below(self, high_watermark: int) -> int:
        """The last stable offset. Never below the log start: an open transaction's first records may be deleted."""
        self.producers.replicated_to(high_watermark)
        return max(self.producers.last_stable_offset(high_watermark), min(self.start_offset, high_watermark))

    # Appending as leader

    def append(
        self, batch: Batch, *, leader_epoch: int, from_client: bool = True, ticket: Ticket | None = None
    ) -> Appended:
        """Append a checked batch as leader, all or nothing (KafkaError, OSError).

        The first batch of a transaction needs the `ticket` of its verification.
        """
        settings, now_ms = self.settings, self.clock.wall_ms()
        if batch.length + OVERHEAD_BYTES > settings.batch_bytes_max and not batch.is_control:
            # A marker is appended even if it exceeds the topic's max.message.bytes.
            raise too_large(self.topic_partition, settings, batch.size)
        if from_client:
            check_timestamps(batch, settings, now_ms)
        if batch.producer_id >= 0:
            earlier = self.producers.check(batch, offset=self.end_offset, from_client=from_client)
            if earlier is not None:
                _, _, first, last, timestamp = earlier
                return Appended(first, last, timestamp, self.start_offset, True, False)
            if batch.attributes & PART_OF_TRANSACTION:
                check_transaction(self.producers, batch, ticket)
        if settings.append_time:
            head = stamp_append_time(batch, base_offset=self.end_offset, leader_epoch=leader_epoch, now_ms=now_ms)
            return self._write(batch, [head, memoryview(batch.data)[HEADER_BYTES:]], leader_epoch, now_ms, now_ms)
        stamp = STAMP.pack(self.end_offset, batch.length, leader_epoch)
        return self._write(batch, [stamp, memoryview(batch.data)[STAMP_BYTES:]], leader_epoch, now_ms, NO_TIMESTAMP)

    def _write(self, batch: Batch, stamped: list[Buffer], leader_epoch: int, now_ms: int, append_time: int) -> Appended:
        settings = self.settings
        size = batch.length + OVERHEAD_BYTES
        base_offset = self.end_offset
        last_offset = base_offset + batch.last_offset_delta
        max_timestamp = append_time if append_time >= 0 else batch.max_timestamp
        segment = self._segments.active
        if must_roll(segment, settings, size=size, last_offset=last_offset, max_timestamp=max_timestamp, now_ms=now_ms):
            segment = self.roll()
        interval = settings.index_interval_bytes
        segment.append(stamped, size=size, last_offset=last_offset, max_timestamp=max_timestamp, interval=interval)
        self.end_offset = last_offset + 1
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        self._take_note(batch, base_offset=base_offset, timestamp=max_timestamp)
        must_flush = last_offset + 1 - self._durability.flushed_offset >= settings.flush_messages
        return Appended(base_offset, last_offset, append_time, self.start_offset, False, must_flush)

    def _take_note(self, batch: Batch, *, base_offset: int, timestamp: int) -> None:
        """Record a batch that was appended to the active segment: producers, epochs, aborted transactions."""
        ended = self.producers.update(batch, base_offset=base_offset, timestamp=timestamp)
        if ended is not None and ended.aborted:
            self._durability.folder_changed()
            self._segments.active.note_aborted(ended.for_index())

    # Appending as follower

    def append_replicated(self, data: Buffer, *, leader_epoch: int) -> None:
        """Append batches of this epoch's leader; offsets and epochs must not decrease.

        All or none if one is refused (CORRUPT_MESSAGE); a failing disk (OSError) may keep the first ones.
        """
        batches = list(iterate(data))
        check_replicated(
            self.topic_partition,
            batches,
            end=self.end_offset,
            log_epoch=self.epochs.latest,
            leader_epoch=leader_epoch,
        )
        for run in self._runs(batches):
            self._append_run(run)

    def _runs(self, batches: list[Batch]) -> Iterator[list[Batch]]:
        """The batches in as few writes as the segments allow; rolls where that is due."""
        run: list[Batch] = []
        size = 0
        for batch in batches:
            if self._is_roll_due(batch, size):
                if run:
                    yield run
                run, size = [], 0
                if self._is_roll_due(batch, 0):
                    self.roll(self._base_for(batch))
            run.append(batch)
            size += batch.size
        if run:
            yield run

    def _base_for(self, batch: Batch) -> int:
        """The log's end, even if compaction left a gap before the batch: recovery would take a gap there for a loss."""
        is_near = batch.last_offset - self.end_offset <= RELATIVE_OFFSET_MAX
        return self.end_offset if is_near else batch.base_offset

    def _is_roll_due(self, batch: Batch, size_before: int) -> bool:
        """Whether the batch needs a new segment, after `size_before` more bytes in the active one."""
        active = self._segments.active
        if active.size == 0 and size_before:
            return size_before + batch.size > self.settings.segment_bytes
        return must_roll(
            active,
            self.settings,
            size=size_before + batch.size,
            last_offset=batch.last_offset,
            max_timestamp=batch.max_timestamp,
            now_ms=self.clock.wall_ms(),
        )

    def _append_run(self, run: list[Batch]) -> None:
        self._segments.active.append_run(run, interval=self.settings.index_interval_bytes)
        self.end_offset = run[-1].last_offset + 1
        for batch in run:
            if batch.leader_epoch > self.epochs.latest:
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
            self._take_note(batch, base_offset=batch.base_offset, timestamp=batch.max_timestamp)

    # Rolling

    def roll(self, base_offset: int | None = None) -> Segment:
        """Start a new segment, by default at the log's end. An active one that starts there is kept."""
        base = self.end_offset if base_offset is None else base_offset
        active = self._segments.active
        if active.base_offset == base:
            return active
        active.write_indexes()
        if base <= self._durability.promised_offset:
            self._durability.sync_promised(active, self.epochs)
        segment = self._new_segment(base)
        segment.create()
        if (emptied := self._segments.roll(segment)) is not None:
            emptied.mark_deleted()
            self.remove_later([emptied])
        self.producers.advance_to(base)
        self._durability.rolled(self.producers, sealed_bytes=active.size, start_offset=self.start_offset)
        return segment

    def _new_segment(self, base_offset: int) -> Segment:
        """A segment without its file."""
        segment = new_segment(self.folder, base_offset, settings=self.settings, system=self._system, files=self.files)
        self._durability.folder_changed()
        return segment

    def remove_later(self, deleted: Sequence[Segment]) -> None:
        """Their files are renamed to .deleted; `take_due_removals` returns them after file.delete.delay.ms."""
        due_ms = self.clock.wall_ms() + self.settings.file_delete_delay_ms
        for segment in deleted:
            self._removals.add(segment.paths(), due_ms=due_ms)

    # Flushing and closing

    @property
    def flushed_offset(self) -> int:
        """The recovery point: everything below it is on disk."""
        return self._durability.flushed_offset

    def flush(self) -> int:
        """Make everything up to the current end durable. Returns the durable offset. Blocking; in a thread.

        A failed flush is final: every later call raises the same OSError again.
        """
        cuts = self._durability.cuts  # before the end is read, see `Durability.flush`
        return self._durability.flush(self._segments, self.epochs, end=self.end_offset, cuts=cuts)

    def flush_sealed(self) -> int:
        """The same for all but the active segment, as Kafka does in the background after a roll."""
        cuts = self._durability.cuts
        end = self._segments.active.base_offset
        return self._durability.flush(self._segments, self.epochs, end=end, cuts=cuts)

    def close(self, clean: bool = True) -> None:
        """Write files that a clean `open` trusts without a scan; if not `clean`, only release them. Blocking."""
        if clean:
            active = self._segments.active
            active.write_indexes()
            if active.indexes_unsynced:
                active.sync_indexes()
            self._durability.write_snapshot(self.producers)
            if self._durability.needs_flush(self.end_offset):
                self.flush()
            self.epochs.save(self.disk)
        for segment in self._segments.all:
            self.files.forget(segment.handle)
