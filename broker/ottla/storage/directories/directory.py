"""One log dir: its owner, its logs, and its checkpoints.

An OSError is the directory's failure, not the node's: `LogDirectories` takes it offline.
"""

import contextlib
import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ottla.errors import Refusal
from ottla.ports import Disk, Lock
from ottla.storage.core.names import DELETE, STRAY, TopicPartition, parse_folder
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories import checkpoint, meta
from ottla.storage.directories.files import FileCache
from ottla.storage.directories.meta import DirectoryMeta
from ottla.storage.log.log import Log
from ottla.system import System

__all__ = ["CLEAN_SHUTDOWN", "NO_EPOCH", "SLICES", "Contents", "LogDirectory", "claim_all", "close_logs"]

SLICES = 8  # a directory's logs are opened and closed in this many slices in parallel
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
NO_EPOCH = -1

logger = logging.getLogger("ottla.storage")


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a log dir, before any log is opened."""

    clean: bool
    partitions: Sequence[TopicPartition]
    deleted: Sequence[str]  # folders whose removal was interrupted
    recovery_points: Mapping[TopicPartition, int]
    log_starts: Mapping[TopicPartition, int]
    high_watermarks: Mapping[TopicPartition, int]
    cleaned: Mapping[TopicPartition, int]


class LogDirectory:
    """`error` is set when it is offline; `meta` is None until it is formatted."""

    def __init__(
        self,
        path: str,
        system: System,
        *,
        meta: DirectoryMeta | None = None,
        lock: Lock | None = None,
        error: OSError | None = None,
    ) -> None:
        self.path = path
        self.meta = meta
        self.error = error
        self.logs: dict[TopicPartition, Log] = {}
        self._system = system
        self._disk = system.disk
        self._lock = lock
        self._reserved = 0  # logs being created, counted by `load`
        self._stale: set[TopicPartition] = set()  # removed, but perhaps still in a checkpoint file
        self._writing = threading.Lock()  # guards the checkpoint files, which share temporary names

    # logs; on the loop

    @property
    def load(self) -> int:
        """The number of its logs, including those being created."""
        return len(self.logs) + self._reserved

    @contextlib.contextmanager
    def reserved(self) -> Iterator[None]:
        """A log is being created."""
        self._reserved += 1
        try:
            yield
        finally:
            self._reserved -= 1

    def add(self, key: TopicPartition, log: Log) -> None:
        self.logs[key] = log

    def remove(self, key: TopicPartition) -> None:
        self.logs.pop(key)
        self._stale.add(key)

    def take_offline(self, error: OSError) -> list[TopicPartition]:
        """Close the files of its logs. Returns its partitions."""
        self.error = error
        lost = list(self.logs)
        for log in self.logs.values():
            with contextlib.suppress(OSError):
                log.close(clean=False)
        self.logs.clear()
        return lost

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # disk; blocking

    def identify(self, *, cluster_id: str, node_id: int) -> None:
        """Format the directory if it is not."""
        if self.meta is None:
            own = DirectoryMeta(cluster_id=cluster_id, node_id=node_id, directory_id=self._system.new_uuid())
            meta.write_meta(self._disk, self.path, own)
            self.meta = own

    def clean_epoch(self) -> int:
        """The broker epoch of the last clean stop (KIP-966); NO_EPOCH after any other."""
        try:
            epoch = json.loads(self._disk.read_file(f"{self.path}/{CLEAN_SHUTDOWN}"))["brokerEpoch"]
        except (OSError, ValueError, KeyError, TypeError):
            return NO_EPOCH
        return epoch if isinstance(epoch, int) else NO_EPOCH

    def survey(self) -> Contents:
        """List the contents. Removes the clean-shutdown file, so that a later crash is seen as one."""
        disk, path = self._disk, self.path
        partitions: list[TopicPartition] = []
        deleted: list[str] = []
        for name in disk.names(path):
            is_ours = name.endswith(DELETE) or (parse_folder(name) is not None and not name.endswith(STRAY))
            if is_ours and not disk.is_folder(f"{path}/{name}"):
                logger.warning("%s/%s is skipped: it is named like a partition's folder, and is none", path, name)
            elif name.endswith(DELETE):
                deleted.append(f"{path}/{name}")
            elif not name.endswith(STRAY) and name != meta.KAFKA_METADATA_FOLDER and (parsed := parse_folder(name)):
                partitions.append(parsed)
        clean = disk.exists(f"{path}/{CLEAN_SHUTDOWN}")
        if partitions and not clean:
            logger.info("log dir %s: the last stop was not clean; %d logs are checked", path, len(partitions))
        contents = Contents(
            clean,
            partitions,
            deleted,
            recovery_points=_checkpoint(self._disk, path, checkpoint.RECOVERY_POINT),
            log_starts=_checkpoint(self._disk, path, checkpoint.LOG_START),
            high_watermarks=_checkpoint(self._disk, path, checkpoint.HIGH_WATERMARK),
            cleaned=_checkpoint(self._disk, path, checkpoint.CLEANER),
        )
        self._stale.update(contents.recovery_points, contents.log_starts, contents.high_watermarks, contents.cleaned)
        self._stale.difference_update(partitions)
        if clean:
            disk.remove(f"{path}/{CLEAN_SHUTDOWN}")
            disk.sync_folder(path)
        return contents

    def open_logs(
        self,
        files: FileCache,
        contents: Contents,
        partitions: Iterable[TopicPartition],
        settings_of: Callable[[str], LogSettings],
    ) -> list[tuple[TopicPartition, Log, uuid.UUID | None]]:
        opened = []
        for key in partitions:
            folder = f"{self.path}/{key[0]}-{key[1]}"
            log = Log.open(
                folder,
                settings=settings_of(key[0]),
                system=self._system,
                files=files,
                clean=contents.clean,
                log_start=contents.log_starts.get(key, 0),
                recovery_point=contents.recovery_points.get(key, 0),
                cleaned_to=contents.cleaned.get(key, 0) if contents.cleaned else None,
            )
            opened.append((key, log, meta.read_topic_id(self._disk, folder)))
        return opened

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        logs = dict(self.logs)
        starts = {key: log.start_offset for key, log in logs.items() if log.start_offset > log.segments[0].base_offset}
        points = {key: log.flushed_offset for key, log in logs.items()}
        marks = {key: high_watermarks[key] for key in logs if key in high_watermarks}
        with self._writing:
            checkpoint.write(self._disk, self.path, checkpoint.RECOVERY_POINT, points)
            checkpoint.write(self._disk, self.path, checkpoint.LOG_START, starts)
            checkpoint.write(self._disk, self.path, checkpoint.HIGH_WATERMARK, marks)

    def write_recovery_points(self) -> None:
        """Write the recovery points of all logs. They are read under the lock, so a later writer never has older
        ones."""
        with self._writing:
            points = {key: log.flushed_offset for key, log in list(self.logs.items())}
            checkpoint.write(self._disk, self.path, checkpoint.RECOVERY_POINT, points)

    def write_cleaned(self, offsets: Mapping[TopicPartition, int]) -> None:
        with self._writing:
            checkpoint.write(self._disk, self.path, checkpoint.CLEANER, offsets)

    def forget_offsets(self, key: TopicPartition) -> None:
        """Remove the checkpoint entries of an earlier topic with this name."""
        if key not in self._stale:
            return
        kinds = (checkpoint.RECOVERY_POINT, checkpoint.LOG_START, checkpoint.HIGH_WATERMARK, checkpoint.CLEANER)
        with self._writing:
            for name in kinds:
                offsets = _checkpoint(self._disk, self.path, name)
                if offsets.pop(key, None) is not None:
                    checkpoint.write(self._disk, self.path, name, offsets)
        self._stale.discard(key)

    def mark_clean(self, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int) -> None:
        """Write the clean-shutdown file, last, after all logs are closed."""
        self.write_checkpoints(high_watermarks)
        mark = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))  # Kafka's own content
        self._disk.replace_file(f"{self.path}/{CLEAN_SHUTDOWN}", mark.encode())


def claim_all(system: System, paths: Sequence[str], *, cluster_id: str | None, node_id: int) -> list[LogDirectory]:
    """Lock the log dirs and check that they are ours. A Refusal releases all; a failed disk gives an offline dir.

    `cluster_id` None: all must have the cluster id of the first formatted directory.
    """
    claimed: list[LogDirectory] = []
    try:
        for path in paths:
            one = _claim(system, path.rstrip("/"), cluster_id=cluster_id, node_id=node_id)
            claimed.append(one)
            cluster_id = cluster_id or (one.meta.cluster_id if one.meta else None)
        failures = [f"log dir {one.path} cannot be used: {_why(one.error)}" for one in claimed if one.error]
        if len(failures) == len(claimed):
            raise Refusal("; ".join(failures))
        for failure in failures:
            logger.error("%s", failure)
    except BaseException:
        for one in claimed:
            one.release()
        raise
    return claimed


def _claim(system: System, path: str, *, cluster_id: str | None, node_id: int) -> LogDirectory:
    disk = system.disk
    try:
        disk.make_folder(path)
        found = meta.read_meta(disk, path)
        if found is not None:
            meta.refuse_foreign(found, folder=path, cluster_id=cluster_id, node_id=node_id)
        else:
            _refuse_unidentified_data(system, path)
        return LogDirectory(path, system, meta=found, lock=meta.lock(disk, path))
    except OSError as error:
        return LogDirectory(path, system, error=error)


def _why(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "there is a file of that name, or on the way to it"
    return error.strerror or str(error)


def _refuse_unidentified_data(system: System, path: str) -> None:
    """Refuse a directory with data and without meta.properties: formatting it could assign it to another cluster."""
    names = system.disk.names(path)
    disk = system.disk
    partitions = sum(parse_folder(name) is not None and disk.is_folder(f"{path}/{name}") for name in names)
    if partitions or meta.METADATA_FOLDER in names:
        held = f"{partitions} partitions" if partitions else f"the metadata log ({meta.METADATA_FOLDER})"
        raise Refusal(
            f"data directory {path} holds {held} and no {meta.META}; restore that file (its cluster.id is the one of "
            "the other directories and nodes) or use an empty directory"
        )


def _checkpoint(disk: Disk, path: str, name: str) -> checkpoint.Offsets:
    """A damaged checkpoint counts as empty: the logs are read instead, as in Kafka."""
    try:
        return checkpoint.read(disk, path, name)
    except Refusal as malformed:
        logger.warning("%s", malformed)
        return {}


def close_logs(logs: Iterable[Log]) -> None:
    for log in logs:
        log.close()
