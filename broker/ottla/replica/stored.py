"""A partition's log on disk: reads, flushes, deletions, truncation, and disk failures."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from ottla.errors import Code, KafkaError
from ottla.storage.core.slice import Slice
from ottla.storage.log import retention, truncation
from ottla.storage.log.log import Located, Log
from ottla.storage.log.segment import Segment
from ottla.storage.log.truncation import Truncation
from ottla.system import NO_MORE_FILES, System, finished

__all__ = ["Stored"]

Found = TypeVar("Found")


class Stored(ABC):
    def __init__(self, topic: str, index: int, log: Log, *, system: System) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self._system = system
        self._flush_task: asyncio.Task[None] | None = None
        self._sealing: asyncio.Future[int] | None = None
        self._deleting: asyncio.Task[None] | None = None

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def disk_failed(self, error: OSError) -> KafkaError:
        """Take the log dir offline, unless the process is only out of file descriptors. Returns the error to raise."""
        if error.errno not in NO_MORE_FILES:
            self._take_offline(error)
        return KafkaError(Code.kafka_storage_error, f"{self}: {error}")

    @abstractmethod
    def _take_offline(self, error: OSError) -> None: ...

    @abstractmethod
    def _flushed(self, end: int) -> None:
        """Everything below `end` is on the disk."""

    @abstractmethod
    def _flush_ended(self, *, failed: bool) -> None:
        """The flush succeeded, or failed for good."""

    @abstractmethod
    def start_moved(self) -> None:
        """The log begins later than before."""

    @property
    def durable_end(self) -> int:
        """The end that a follower may acknowledge."""
        return self.log.end_offset if self._flush_task is None else self.log.flushed_offset

    # durability

    def flush_soon(self) -> None:
        """Flush the log; appends that arrive meanwhile share the next flush."""
        if self._flush_task is None:
            self._flush_task = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        failed = False
        try:
            if self._sealing is not None:
                await asyncio.wait([self._sealing])
            while self.log.flushed_offset < self.log.end_offset:
                self._flushed(await self._system.threads.run(self.log.flush))
        except OSError as error:
            failed = True
            self._take_offline(error)
        finally:
            self._flush_task = None
            self._flush_ended(failed=failed)

    async def flush_sealed(self) -> None:
        """Flush the inactive segments, so that recovery after a crash need not scan them."""
        if self._flush_task is not None or self.log.flushed_offset >= self.log.active.base_offset:
            return
        self._sealing = self._system.threads.run(self.log.flush_sealed)
        try:
            await self._sealing
        except OSError as error:
            self._take_offline(error)
        finally:
            self._sealing = None

    # deleting

    def delete_before(self, offset: int) -> None:
        """DeleteRecords: the log starts at `offset` from now on; followers adopt that."""
        self.begin_at(offset)
        self.start_moved()

    def begin_at(self, offset: int) -> None:
        """Raise the log start to `offset`. Segments below it are deleted soon. KafkaError: OFFSET_OUT_OF_RANGE."""
        self.log.advance_start(offset)
        if self._deleting is None and self.log.has_segments_below_start:
            self._deleting = asyncio.ensure_future(self._delete_below_start())

    async def _delete_below_start(self) -> None:
        try:
            async with self.log.changing:
                await self._mark_deleted(self.log.take_below_start())
        except OSError as error:
            self._take_offline(error)
        finally:
            self._deleting = None

    async def delete_expired(self, now_ms: int, high_watermark: int, *, is_wanted: Callable[[], bool]) -> int:
        """Retention. Returns the number of deleted segments. `is_wanted` is False once the partition is removed."""
        log = self.log
        try:
            if not await self._system.threads.run(log.expired_segments, now_ms, high_watermark):
                return 0
            async with log.changing:
                expired = log.take_expired(now_ms, high_watermark) if is_wanted() else []
                await self._mark_deleted(expired)
        except OSError as error:
            self._take_offline(error)
            return 0
        return len(expired)

    async def _mark_deleted(self, taken: list[Segment]) -> None:
        """The log does not have them any more; readers that still hold these segments open them by their new names."""
        if taken:
            await finished(self._system.threads.run(retention.mark_deleted, taken))
            self.log.remove_later(taken)

    async def purge(self, now_ms: int) -> None:
        """Remove the files of deleted segments after their delay. Unlinking a large file takes a while."""
        if due := self.log.take_due_removals(now_ms):
            try:
                await self._system.threads.run(self.log.remove, due)
            except OSError as error:
                self._take_offline(error)

    # truncation

    async def truncate(self, plan: Callable[[], Truncation | None], *, is_wanted: Callable[[], bool]) -> bool:
        """Truncate the log by `plan`, which runs in a thread. False when nothing was truncated: the log ends there
        already, it changed during the plan, or `is_wanted` is False. KafkaError: KAFKA_STORAGE_ERROR.

        The plan may take seconds and blocks nothing: meanwhile this broker may learn of another leader epoch, or become
        leader and append. Such a plan is discarded, because it says where this log diverges from an *earlier* leader's
        log: the new leader may rely on records beyond that, which this broker has stated as its own in the new epoch.
        `is_wanted` is called while `changing` is held, and roles change only while it is held (see host.py), so from
        then on nothing is appended until the file is truncated.
        """
        log, threads = self.log, self._system.threads
        try:
            planned = await threads.run(plan)
            async with log.changing:
                files = log.apply_truncation(planned) if planned is not None and is_wanted() else None
                if files is None:
                    return False
                self.log_was_cut()
                await finished(threads.run(truncation.truncate_files, files))
                log.finish_truncation(files)
        except OSError as error:
            raise self.disk_failed(error) from error
        return True

    @abstractmethod
    def log_was_cut(self) -> None:
        """The log was truncated, or starts over at another offset."""

    # reading

    def read(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes | None:
        """Whole batches from `start`, or None when they must be read with `read_cold`."""
        try:
            return self.log.read(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        except OSError as error:
            raise self.disk_failed(error) from error

    async def read_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> bytes:
        def read() -> bytes:
            return self.log.read_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

        return await self._in_thread(read)

    def read_slice(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice | None:
        """As `read`, with the aborted transactions in the range."""
        try:
            return self.log.read_slice(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        except OSError as error:
            raise self.disk_failed(error) from error

    async def read_slice_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Slice:
        def read() -> Slice:
            return self.log.read_slice_cold(
                start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first
            )

        return await self._in_thread(read)

    def locate(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located | None:
        """The range that `read_slice` would read, to be read when it is sent; None when `locate_cold` is needed."""
        try:
            found = self.log.locate(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        except OSError as error:
            raise self.disk_failed(error) from error
        if found is not None and found.region is not None:
            found.region.on_failure(self._take_offline)
        return found

    async def locate_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located:
        def locate() -> Located:
            return self.log.locate_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

        found = await self._in_thread(locate)
        if found.region is not None:
            found.region.on_failure(self._take_offline)
        return found

    async def _in_thread(self, read: Callable[[], Found]) -> Found:
        try:
            return await self._system.threads.run(read)
        except OSError as error:
            raise self.disk_failed(error) from error
