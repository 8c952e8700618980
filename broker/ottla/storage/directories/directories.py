"""All log dirs of a broker: which log lies where, new ones, deleted ones, foreign ones, and a dir that fails.

Runs on the event loop; disk work goes to threads. A failed directory takes its own logs offline and nothing else.
"""

import asyncio
import contextlib
import errno
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ottla.errors import Code, KafkaError
from ottla.storage.core.folder_names import DELETE, TopicPartition, folder_name, marked
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories import directory, loading, meta
from ottla.storage.directories.directory import SLICES, LogDirectory
from ottla.storage.directories.files import FileCache
from ottla.storage.log.log import Log
from ottla.system import System

__all__ = ["DirectoryFacts", "LogDirectories"]

logger = logging.getLogger("ottla.storage")

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryFacts:
    """For DescribeLogDirs: `error` when offline; sizes in bytes."""

    path: str
    error: OSError | None
    total_bytes: int
    usable_bytes: int
    sizes: Mapping[TopicPartition, int]


NOTHING: Mapping[TopicPartition, uuid.UUID] = MappingProxyType({})


class LogDirectories:
    """Invariant: `logs` holds exactly the logs of the directories that are online.

    `on_failure` learns which partitions went offline with a directory; `on_all_failed`, that none is left.
    """

    def __init__(
        self,
        claimed: Sequence[LogDirectory],
        *,
        system: System,
        files: FileCache,
        on_failure: Callable[[LogDirectory, list[TopicPartition]], None],
        on_all_failed: Callable[[], None],
    ) -> None:
        self.directories = list(claimed)
        self.logs: dict[TopicPartition, Log] = {}
        self.topic_ids: dict[TopicPartition, uuid.UUID | None] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}  # as checkpointed before the start
        self.cleaned: dict[TopicPartition, int] = {}  # up to where a log is compacted
        self.system = system
        self.disk = system.disk
        self.files = files
        self._on_failure = on_failure
        self._on_all_failed = on_all_failed
        self._creating: set[TopicPartition] = set()
        self.doomed: list[tuple[int, str]] = []  # (when to remove it, folder)

    @property
    def cluster_id(self) -> str | None:
        """As the directories say; None when none is formatted."""
        return next((one.meta.cluster_id for one in self.directories if one.meta), None)

    @property
    def online(self) -> list[LogDirectory]:
        return [one for one in self.directories if one.error is None]

    def identify(self, *, cluster_id: str, node_id: int) -> None:
        """Format the directories that are not yet. Blocking."""
        for one in self.online:
            with self.containing(one):
                directory.identify(self.system, one, cluster_id=cluster_id, node_id=node_id)

    async def open_all(
        self, settings_of: Callable[[str], LogSettings], expected: Mapping[TopicPartition, uuid.UUID] = NOTHING
    ) -> None:
        """Open every log of every directory. Refused: one partition in two directories.

        `expected` are the topics' ids: which of two logs with one name is the present topic's.
        """
        await loading.open_all(self, settings_of, expected)

    def reconcile(self, expected: Mapping[TopicPartition, uuid.UUID]) -> list[TopicPartition]:
        """Set aside every log that is not of the topic that is expected there; the ones set aside. Blocking."""
        return loading.reconcile(self, expected)

    # Logs come and go

    async def create(self, topic: str, partition: int, topic_id: uuid.UUID, settings: LogSettings) -> Log:
        """A new log in the directory that has fewest. KAFKA_STORAGE_ERROR when its directory fails."""
        key = (topic, partition)
        if key in self.logs:
            return self.logs[key]
        assert key not in self._creating, f"{key} is being made twice"
        if not self.online:
            raise KafkaError(Code.kafka_storage_error, "every log dir is offline")
        one = min(self.online, key=lambda candidate: len(candidate.logs) + candidate.reserved)
        one.reserved += 1
        self._creating.add(key)
        try:
            log = await self.system.threads.run(self._create, one, key, topic_id, settings)
        except OSError as error:
            self.fail(one, error)
            raise KafkaError(Code.kafka_storage_error, f"log dir {one.path} failed: {error}") from error
        finally:
            one.reserved -= 1
            self._creating.discard(key)
        if one.error is not None:
            raise KafkaError(Code.kafka_storage_error, f"log dir {one.path} failed: {one.error}")
        self.logs[key] = one.logs[key] = log
        self.topic_ids[key] = topic_id
        return log

    def _create(self, one: LogDirectory, key: TopicPartition, topic_id: uuid.UUID, settings: LogSettings) -> Log:
        folder = f"{one.path}/{folder_name(*key)}"
        if key in one.stale:
            directory.forget_offsets(self.system, one, key)
            one.stale.discard(key)
        self.disk.make_folder(folder)
        meta.write_topic_id(self.disk, folder, topic_id)
        self.disk.sync_folder(one.path)
        return Log.open(folder, settings=settings, system=self.system, files=self.files, clean=True)

    def delete(self, log: Log) -> None:
        """Gone at once for everybody; its files are removed by `purge` after file.delete.delay.ms."""
        key = self.key_of(log)
        with self.containing(self.directory_of(log)):
            path = self.move_away(key, log, DELETE)
            due_ms = self.system.clock.wall_ms() + log.settings.file_delete_delay_ms
            self.doomed.append((due_ms, path))

    def move_away(self, key: TopicPartition, log: Log, suffix: str) -> str:
        one = self.directory_of(log)
        path = f"{one.path}/{marked(*key, self.system.new_uuid(), suffix)}"
        log.close(clean=False)
        log.move_to(path)
        self._forget(key)
        return path

    def _forget(self, key: TopicPartition) -> None:
        one = self.directory_of(self.logs.pop(key))
        one.logs.pop(key)
        one.stale.add(key)
        for known in (self.topic_ids, self.high_watermarks, self.cleaned):
            known.pop(key, None)

    async def purge(self, now_ms: int) -> None:
        """Remove the folders whose time has come."""
        due = [path for due_ms, path in self.doomed if due_ms <= now_ms]
        self.doomed = [entry for entry in self.doomed if entry[0] > now_ms]
        for path in due:
            try:
                await self.system.threads.run(self.disk.remove_folder, path)
            except OSError as error:
                self.fail(self._directory_at(path), error)

    # Failure

    def fail(self, one: LogDirectory, error: OSError) -> list[TopicPartition]:
        """Take a directory offline, with its logs; what they are. A full disk is a failure too, as in Kafka."""
        if one.error is not None:
            return []
        one.error = error
        lost = list(one.logs)
        for log in one.logs.values():
            with contextlib.suppress(OSError):
                log.close(clean=False)
        for key in lost:
            self.logs.pop(key, None)
            self.topic_ids.pop(key, None)
        one.logs.clear()
        hint = "; free some space there and start the broker again" if error.errno in NO_SPACE else ""
        logger.error("log dir %s is offline with %d partitions: %s%s", one.path, len(lost), error, hint)
        self._on_failure(one, lost)
        if not self.online:
            self._on_all_failed()
        return lost

    @contextlib.contextmanager
    def containing(self, one: LogDirectory) -> Iterator[None]:
        """An OSError inside is the directory's failure, and goes no further."""
        try:
            yield
        except OSError as error:
            self.fail(one, error)

    def directory_of(self, log: Log) -> LogDirectory:
        return self._directory_at(log.folder)

    def _directory_at(self, folder: str) -> LogDirectory:
        parent = folder.rpartition("/")[0]
        return next(one for one in self.directories if one.path == parent)

    def key_of(self, log: Log) -> TopicPartition:
        topic, _, number = log.topic_partition.rpartition("-")
        return topic, int(number)

    # Checkpoints, stopping, describing

    async def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Recovery points, high watermarks and log starts of every directory."""
        for one in self.online:
            with self.containing(one):
                await self.system.threads.run(directory.write_checkpoints, self.system, one, dict(high_watermarks))

    async def write_recovery_points(self, log: Log) -> None:
        """Of the directory that holds this log."""
        one = self.directory_of(log)
        with self.containing(one):
            await self.system.threads.run(directory.write_recovery_points, self.system, one)

    async def write_cleaned(self, key: TopicPartition, offset: int) -> None:
        """Remember up to where a log is compacted."""
        self.cleaned[key] = offset
        one = self.directory_of(self.logs[key])
        own = {key: self.cleaned[key] for key in one.logs if key in self.cleaned}
        with self.containing(one):
            await self.system.threads.run(directory.write_cleaned, self.system, one, own)

    def clean_epoch(self) -> int:
        """The broker epoch of the last stop, if all directories were stopped cleanly with it. Before `open_all`."""
        epochs = {directory.clean_epoch(self.system, one) for one in self.directories}
        return epochs.pop() if len(epochs) == 1 else directory.NO_EPOCH

    async def close(
        self, high_watermarks: Mapping[TopicPartition, int], *, broker_epoch: int = directory.NO_EPOCH
    ) -> None:
        """Close every log cleanly, then mark each directory as cleanly stopped and let it go."""
        closing = [self._close_directory(one, dict(high_watermarks), broker_epoch) for one in self.online]
        await asyncio.gather(*closing)
        for one in self.directories:
            directory.release(one)

    async def _close_directory(
        self, one: LogDirectory, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int
    ) -> None:
        threads, logs = self.system.threads, list(one.logs.values())
        with self.containing(one):
            slices = (logs[start::SLICES] for start in range(SLICES))
            await asyncio.gather(*(threads.run(directory.close_logs, part) for part in slices if part))
            await threads.run(directory.mark_clean, self.system, one, high_watermarks, broker_epoch)

    async def describe(self) -> list[DirectoryFacts]:
        return [await self.system.threads.run(self._describe, one) for one in self.directories]

    def _describe(self, one: LogDirectory) -> DirectoryFacts:
        sizes = {key: log.size_bytes for key, log in dict(one.logs).items()}
        total = usable = -1  # unknown, as Kafka says it
        with contextlib.suppress(OSError):
            if one.error is None:
                total, usable = self.disk.total_bytes(one.path), self.disk.free_bytes(one.path)
        return DirectoryFacts(path=one.path, error=one.error, total_bytes=total, usable_bytes=usable, sizes=sizes)
