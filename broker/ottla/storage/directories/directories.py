"""All log dirs of a broker: opening, creating and deleting logs, setting aside stray ones, failures of a dir.

Runs on the event loop; disk work goes to threads. A failed directory takes its own logs offline and nothing else.
"""

import asyncio
import contextlib
import errno
import logging
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ottla.errors import Code, KafkaError, Refusal
from ottla.ids import uuid_text
from ottla.storage.core.names import DELETE, STRAY, TopicPartition, folder_name, marked
from ottla.storage.core.removals import Removals
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories import meta
from ottla.storage.directories.directory import NO_EPOCH, SLICES, LogDirectory, close_logs
from ottla.storage.directories.files import FileCache
from ottla.storage.directories.loading import Opened, open_logs
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
    """Invariant: `logs` has exactly the logs of the online directories.

    `on_failure` is called with the partitions of a failed directory; `on_all_failed` when no directory is online.
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
        self.high_watermarks: dict[TopicPartition, int] = {}  # from the checkpoints at the start
        self.cleaned: dict[TopicPartition, int] = {}  # end of the clean part of each log
        self.system = system
        self.disk = system.disk
        self.files = files
        self._on_failure = on_failure
        self._on_all_failed = on_all_failed
        self._creating: set[TopicPartition] = set()
        self._removals = Removals()  # folders of deleted logs

    @property
    def cluster_id(self) -> str | None:
        """The cluster id in the directories; None if none is formatted."""
        return next((one.meta.cluster_id for one in self.directories if one.meta), None)

    @property
    def online(self) -> list[LogDirectory]:
        return [one for one in self.directories if one.error is None]

    def identify(self, *, cluster_id: str, node_id: int) -> None:
        """Format the unformatted directories. Blocking."""
        for one in self.online:
            with self.containing(one):
                one.identify(cluster_id=cluster_id, node_id=node_id)

    async def open_all(
        self, settings_of: Callable[[str], LogSettings], expected: Mapping[TopicPartition, uuid.UUID] = NOTHING
    ) -> None:
        """Open every log of every directory. Refusal if a partition is in two directories.

        `expected` are the topics' ids: they tell which of two logs with the same name is the current topic's.
        """
        for found in await asyncio.gather(*(self._open_directory(one, settings_of) for one in self.online)):
            for opened in found:
                self._admit(opened, expected.get(opened.key))

    async def _open_directory(self, one: LogDirectory, settings_of: Callable[[str], LogSettings]) -> list[Opened]:
        found: list[Opened] = []
        with self.containing(one):
            contents = await self.system.threads.run(one.survey)
            self._removals.add(contents.deleted, due_ms=0)
            found = await open_logs(one, contents, self.system.threads, self.files, settings_of)
        return found if one.error is None else []

    def _admit(self, opened: Opened, expected: uuid.UUID | None) -> None:
        """Of two logs with the same name, one may be of a topic that was deleted while this broker was down."""
        key, rival = opened.key, self.logs.get(opened.key)
        if rival is not None:
            if opened.topic_id == self.topic_ids.get(key):
                raise Refusal(f"{rival.folder} and {opened.log.folder} hold the same partition; remove one")
            if opened.topic_id != expected:
                self._set_aside_rival(opened)
                return
            with self.containing(self.directory_of(rival)):
                self._set_aside(key, rival, "another log dir holds the log of the present topic of that name")
        self.logs[key] = opened.log
        self.topic_ids[key] = opened.topic_id
        if opened.high_watermark is not None:
            self.high_watermarks[key] = opened.high_watermark
        if opened.cleaned is not None:
            self.cleaned[key] = opened.cleaned

    def _set_aside_rival(self, opened: Opened) -> None:
        """Set aside a log that was not added to `logs`."""
        one, log = opened.directory, opened.log
        with self.containing(one):
            path = f"{one.path}/{marked(*opened.key, self.system.new_uuid(), STRAY)}"
            log.close(clean=False)
            _warn(log, path, "another log dir holds the log of the present topic of that name")
            log.move_to(path)
            one.remove(opened.key)

    def _set_aside(self, key: TopicPartition, log: Log, why: str) -> None:
        _warn(log, self._move_away(key, log, STRAY), why)

    def reconcile(
        self, expected: Mapping[TopicPartition, uuid.UUID], replicas: Container[TopicPartition] = ()
    ) -> list[TopicPartition]:
        """Set aside and return every log whose topic id is not the expected one. Blocking.

        `replicas` are the partitions of which this broker is a replica.
        """
        aside: list[TopicPartition] = []
        for key, log in list(self.logs.items()):
            with self.containing(self.directory_of(log)):
                # A folder without partition.metadata counts as the current topic's, as in Kafka: the file is written
                # first, so someone removed it. An empty log instead would lose acknowledged records.
                has_no_file = self.topic_ids.get(key) is None and key in expected
                if has_no_file and (log.end_offset == 0 or key in replicas):
                    if log.end_offset:
                        logger.warning("%s had no %s: it is written again", log.folder, meta.PARTITION_META)
                    meta.write_topic_id(self.disk, log.folder, expected[key])
                    self.topic_ids[key] = expected[key]
                elif self.topic_ids.get(key) != expected.get(key) or key not in expected:
                    self._set_aside(key, log, _mismatch(self.topic_ids.get(key), expected.get(key)))
                    aside.append(key)
        return aside

    # Creating and deleting logs

    async def create(self, topic: str, partition: int, topic_id: uuid.UUID, settings: LogSettings) -> Log:
        """Create a log in the directory with the fewest. KafkaError: KAFKA_STORAGE_ERROR when the directory fails."""
        key = (topic, partition)
        if key in self.logs:
            return self.logs[key]
        assert key not in self._creating, f"{key} is being created twice"
        if not self.online:
            raise KafkaError(Code.kafka_storage_error, "every log dir is offline")
        one = min(self.online, key=lambda candidate: candidate.load)
        self._creating.add(key)
        try:
            with one.reserved():
                log = await self.system.threads.run(self._create, one, key, topic_id, settings)
        except OSError as error:
            self.fail(one, error)
            raise KafkaError(Code.kafka_storage_error, f"log dir {one.path} failed: {error}") from error
        finally:
            self._creating.discard(key)
        if one.error is not None:
            raise KafkaError(Code.kafka_storage_error, f"log dir {one.path} failed: {one.error}")
        self.logs[key] = log
        self.topic_ids[key] = topic_id
        one.add(key, log)
        return log

    def _create(self, one: LogDirectory, key: TopicPartition, topic_id: uuid.UUID, settings: LogSettings) -> Log:
        folder = f"{one.path}/{folder_name(*key)}"
        one.forget_offsets(key)
        self.disk.make_folder(folder)
        meta.write_topic_id(self.disk, folder, topic_id)
        self.disk.sync_folder(one.path)
        return Log.open(folder, settings=settings, system=self.system, files=self.files, clean=True)

    def delete(self, log: Log) -> None:
        """Rename the folder; `purge` removes it after file.delete.delay.ms."""
        key = self.key_of(log)
        with self.containing(self.directory_of(log)):
            path = self._move_away(key, log, DELETE)
            self._removals.add([path], due_ms=self.system.clock.wall_ms() + log.settings.file_delete_delay_ms)

    def _move_away(self, key: TopicPartition, log: Log, suffix: str) -> str:
        one = self.directory_of(log)
        path = f"{one.path}/{marked(*key, self.system.new_uuid(), suffix)}"
        log.close(clean=False)
        log.move_to(path)
        self._forget(key)
        return path

    def _forget(self, key: TopicPartition) -> None:
        self.directory_of(self.logs.pop(key)).remove(key)
        for known in (self.topic_ids, self.high_watermarks, self.cleaned):
            known.pop(key, None)

    async def purge(self, now_ms: int) -> None:
        """Remove deleted folders whose delay is over."""
        for path in self._removals.take_due(now_ms):
            try:
                await self.system.threads.run(self.disk.remove_folder, path)
            except OSError as error:
                self.fail(self._directory_at(path), error)

    # Failure

    def fail(self, one: LogDirectory, error: OSError) -> list[TopicPartition]:
        """Take a directory offline. Returns its partitions. A full disk is a failure too, as in Kafka."""
        if one.error is not None:
            return []
        lost = one.take_offline(error)
        for key in lost:
            self.logs.pop(key, None)
            self.topic_ids.pop(key, None)
        hint = "; free some space there and start the broker again" if error.errno in NO_SPACE else ""
        logger.error("log dir %s is offline with %d partitions: %s%s", one.path, len(lost), error, hint)
        self._on_failure(one, lost)
        if not self.online:
            self._on_all_failed()
        return lost

    @contextlib.contextmanager
    def containing(self, one: LogDirectory) -> Iterator[None]:
        """An OSError in this block takes the directory offline and is not raised."""
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
                await self.system.threads.run(one.write_checkpoints, dict(high_watermarks))

    async def write_recovery_points(self, log: Log) -> None:
        """Write the recovery points of this log's directory."""
        one = self.directory_of(log)
        with self.containing(one):
            await self.system.threads.run(one.write_recovery_points)

    async def write_cleaned(self, key: TopicPartition, offset: int) -> None:
        """Checkpoint the end of a log's clean part."""
        self.cleaned[key] = offset
        one = self.directory_of(self.logs[key])
        own = {key: self.cleaned[key] for key in one.logs if key in self.cleaned}
        with self.containing(one):
            await self.system.threads.run(one.write_cleaned, own)

    def clean_epoch(self) -> int:
        """The broker epoch of the last clean stop, if all directories have the same one. Call before `open_all`."""
        epochs = {one.clean_epoch() for one in self.directories}
        return epochs.pop() if len(epochs) == 1 else NO_EPOCH

    async def close(self, high_watermarks: Mapping[TopicPartition, int], *, broker_epoch: int = NO_EPOCH) -> None:
        """Close every log cleanly, then write each directory's clean-shutdown file and release its lock."""
        closing = [self._close_directory(one, dict(high_watermarks), broker_epoch) for one in self.online]
        await asyncio.gather(*closing)
        for one in self.directories:
            one.release()

    async def _close_directory(
        self, one: LogDirectory, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int
    ) -> None:
        threads, logs = self.system.threads, list(one.logs.values())
        with self.containing(one):
            slices = (logs[start::SLICES] for start in range(SLICES))
            await asyncio.gather(*(threads.run(close_logs, part) for part in slices if part))
            await threads.run(one.mark_clean, high_watermarks, broker_epoch)

    async def describe(self) -> list[DirectoryFacts]:
        return [await self.system.threads.run(self._describe, one) for one in self.directories]

    def _describe(self, one: LogDirectory) -> DirectoryFacts:
        sizes = {key: log.size_bytes for key, log in dict(one.logs).items()}
        total = usable = -1  # unknown, as in Kafka
        with contextlib.suppress(OSError):
            if one.error is None:
                total, usable = self.disk.total_bytes(one.path), self.disk.free_bytes(one.path)
        return DirectoryFacts(path=one.path, error=one.error, total_bytes=total, usable_bytes=usable, sizes=sizes)


def _mismatch(found: uuid.UUID | None, expected: uuid.UUID | None) -> str:
    if expected is None:
        return "this fleet has no such partition"
    if found is None:
        return f"it has no {meta.PARTITION_META}, and this broker is no replica of the partition"
    return (
        f"it is of a topic with the id {uuid_text(found)}, and the present one of that name has {uuid_text(expected)}"
    )


def _warn(log: Log, path: str, why: str) -> None:
    logger.warning("%s is set aside as %s: %s", log.topic_partition, path, why)
