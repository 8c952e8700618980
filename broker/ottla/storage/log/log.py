"""A partition's log: segments in a folder, in Kafka's own formats. One object in three layers:

reading.py   ReadableLog   reads, from any thread at any time
writing.py   WritableLog   append, roll, flush, close
log.py       Log           open; truncation, retention and compaction, which remove segments

Only the event loop changes a log (append, roll, truncate, retention). Threads may run `read_cold`,
`offset_for_timestamp`, `max_timestamp`, `expired_segments`, a plan to truncate and one `flush` at the same time. This
needs no lock: every change replaces the tuple of segments, a segment's `size` is set after its bytes are written, open
files are kept by reference until the last user drops them, and a flush that a truncation overtakes does not advance the
recovery point (only that assignment and the truncation exclude each other).

Truncation, retention and compaction rename or remove files in a thread, before or after the loop has changed the log.
`changing` is held meanwhile, so that there is one such change at a time; changes of the partition's role and moves of
its folder hold it too. Appends, rolls and flushes continue, except during a truncation.
"""

import asyncio
from collections.abc import Sequence

from ottla.errors import Code, KafkaError
from ottla.storage.core.producers import Producers
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log import replace, retention, truncation
from ottla.storage.log.reading import Located
from ottla.storage.log.recovery import Recovery
from ottla.storage.log.replay import producers_at
from ottla.storage.log.segment import Segment
from ottla.storage.log.timestamps import TimestampOffset
from ottla.storage.log.truncation import FileTruncation, Shape, Truncation
from ottla.storage.log.writing import Appended, WritableLog
from ottla.system import System

__all__ = ["Appended", "Located", "Log", "TimestampOffset"]


class Log(WritableLog):
    def __init__(self, found: Recovery, *, settings: LogSettings, system: System, files: FileCache) -> None:
        super().__init__(found, settings=settings, system=system, files=files)
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
        """Open or create. Blocking. OSError, without any change, when a file cannot be read.

        Unless the last stop was clean, segments from the recovery point on are verified, and the log is cut before the
        first invalid batch. Batches beyond the recovery point may be in the page cache only (the process was killed,
        not the machine): they are synced if appends have to be, because a replica states them as its own.
        """
        recovery = Recovery(folder, settings=settings, system=system, files=files)
        recovery.run(clean=clean, log_start=log_start, recovery_point=recovery_point, cleaned_to=cleaned_to)
        log = cls(recovery, settings=settings, system=system, files=files)
        if log.end_offset - log.flushed_offset >= settings.flush_messages:
            log.flush()
        return log

    def move_to(self, folder: str) -> None:
        """Rename the folder. Readers must not find a newer topic's files under the old name."""
        self.disk.rename(self.folder, folder)
        self.folder = folder
        self._durability.moved_to(folder)
        self._segments.moved_to(folder)

    # Truncation, in the steps of truncation.py

    def plan_truncation(self, offset: int) -> Truncation | None:
        """The plan to end the log at `offset`, or before the batch that contains it; None if it ends there already.
        Blocking; in a thread."""
        return truncation.plan(
            self._shape(), offset, topic_partition=self.topic_partition, producers_at=self._producers_at
        )

    def plan_fresh_start(self, offset: int) -> Truncation:
        """The plan to drop everything and start over at `offset`."""
        return truncation.plan_fresh_start(self._shape(), offset, topic_partition=self.topic_partition)

    def apply_truncation(self, planned: Truncation) -> FileTruncation | None:
        """Truncate in memory, with epochs and producers; None if the log has changed since the plan."""
        shape = self._shape()
        if shape != planned.shape:
            return None
        has_fewer_aborted = False
        if planned.tail is None:
            self._segments.start_over(self._new_segment(planned.end))
            self.epochs.clear()
        else:
            self._segments.keep_first(planned.kept)
            has_fewer_aborted = self._segments.active.apply_cut(planned.tail)
        # Set the end before counting the cut: a flush that read the old end must not see the new count.
        self.end_offset = planned.end
        self._durability.cut_to(planned.end)
        self.epochs.truncate_end(planned.end)
        self.start_offset = planned.end if planned.tail is None else min(self.start_offset, planned.end)
        self._durability.newest_snapshot_is(max(planned.snapshot, self.start_offset))
        self.producers.take_over(planned.producers)
        return FileTruncation(
            dropped=shape.segments[planned.kept :],
            active=self._segments.active,
            is_fresh=planned.tail is None,
            with_aborted=has_fewer_aborted,
            snapshot=planned.snapshot,
        )

    def finish_truncation(self, files: FileTruncation) -> None:
        self.remove_later(files.dropped)
        self._durability.folder_changed()  # again: a flush may have synced the folder before the renames

    def truncate_to(self, offset: int) -> None:
        """Truncate to `offset`, or before the batch that contains it, with producers and epochs. All steps at once.

        Blocking, up to seconds: for callers outside the loop, or an empty log.
        """
        self._truncate(self.plan_truncation(offset))

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and start over at `offset`. Blocking."""
        self._truncate(self.plan_fresh_start(offset))

    def _truncate(self, planned: Truncation | None) -> None:
        files = self.apply_truncation(planned) if planned is not None else None
        if files is not None:
            truncation.truncate_files(files)
            self.finish_truncation(files)

    def _shape(self) -> Shape:
        return Shape(self._segments.all, self.start_offset, self.end_offset)

    def _producers_at(self, end: int) -> tuple[Producers, int]:
        return producers_at(
            self.topic_partition,
            self._segments.all,
            start=self.start_offset,
            end=end,
            now_ms=self.clock.wall_ms(),
            expiry_ms=self.settings.producer_expiry_ms,
        )

    # Deleting from the start: the loop removes segments from the log, then a thread renames their files

    def advance_start(self, offset: int) -> None:
        """Raise the log start to `offset`. KafkaError: OFFSET_OUT_OF_RANGE.

        Segments below it stay until `take_below_start` or retention removes them.
        """
        if offset > self.end_offset:
            raise KafkaError(
                Code.offset_out_of_range,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} since it is "
                f"larger than its end {self.end_offset}",
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.truncate_start(offset)

    @property
    def has_segments_below_start(self) -> bool:
        segments = self._segments.all
        return len(segments) > 1 and segments[0].next_offset <= self.start_offset

    def expired_segments(self, now_ms: int, high_watermark: int) -> list[Segment]:
        """The segments that retention would delete now, oldest first. The first call blocks: in a thread."""
        return retention.expired_segments(
            self._segments.all,
            self.settings,
            start_offset=self.start_offset,
            high_watermark=high_watermark,
            now_ms=now_ms,
        )

    def take_expired(self, now_ms: int, high_watermark: int) -> list[Segment]:
        """Remove the expired segments from the log. Call `expired_segments` in a thread first, because it may block."""
        return self._take_first(self.expired_segments(now_ms, high_watermark))

    def take_below_start(self) -> list[Segment]:
        """Remove the segments below the log start."""
        sealed = self._segments.all[:-1]
        return self._take_first([segment for segment in sealed if segment.next_offset <= self.start_offset])

    def _take_first(self, segments: list[Segment]) -> list[Segment]:
        """Remove these, the log's first segments. An active segment always remains."""
        if not segments:
            return segments
        if segments[-1] is self._segments.active:
            self.roll()
        self._segments.drop_first(len(segments))
        self.advance_start(max(self.start_offset, self._segments.all[0].base_offset))
        return segments

    def delete_below_start(self) -> None:
        """All steps at once. Blocking."""
        self._delete(self.take_below_start())

    def delete_expired(self, now_ms: int, high_watermark: int) -> list[Segment]:
        """All steps at once. Blocking."""
        expired = self.take_expired(now_ms, high_watermark)
        self._delete(expired)
        return expired

    def _delete(self, taken: list[Segment]) -> None:
        retention.mark_deleted(taken)
        self.remove_later(taken)

    def take_due_removals(self, now_ms: int) -> list[str]:
        """Files of deleted segments whose delay is over; the caller removes them with `remove`. On the loop."""
        return self._removals.take_due(now_ms)

    def remove(self, paths: Sequence[str]) -> None:
        """Blocking."""
        for path in paths:
            self.disk.remove(path)

    def purge(self, now_ms: int) -> None:
        """Both at once. Blocking."""
        self.remove(self.take_due_removals(now_ms))

    # Compaction

    def replaced(self, old: Sequence[Segment], new: Segment) -> None:
        """`replace.exchange` replaced the files of `old` by those of `new`; replace the segments too. On the loop."""
        self._segments.swap(old, new)
        self.remove_later(old)
        self._durability.folder_changed()

    def replace(self, old: Sequence[Segment], new_base: int) -> Segment:
        """Replace these by `<new_base>.log.cleaned`, which must be durable. Safe against a crash at any point.

        Without `.cleaned` indexes beside it, they are rebuilt at the first read. Blocking.
        """
        new = replace.exchange(old, new_base, created_ms=self.clock.wall_ms())
        self.replaced(old, new)
        return new
