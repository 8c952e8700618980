"""The real clock, disk, chance and threads behind `ottla.ports`. A simulator passes its own.

Storage, replication, metadata and the quorum reach files, time and chance only through these, never through `os`,
`time`, `random` or `uuid4`. Sockets belong to `net`, `rpc` and `loops`, processes to `storage.workers` and `cli`.
"""

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import resource
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Protocol, TypeVar

from ottla import buffer_pool
from ottla.errors import Refusal
from ottla.ids import uuid_text
from ottla.ports import Buffer, Clock, Disk

__all__ = [
    "FileShares",
    "RealClock",
    "RealDisk",
    "RealThreads",
    "System",
    "Threads",
    "file_limit",
    "files_problem",
    "finished",
    "raise_file_limit",
]

T = TypeVar("T")

OWN_FILE, OWN_FOLDER = 0o600, 0o700


class Threads(Protocol):
    def run(self, work: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        """Run blocking work away from the loop."""


async def finished(work: "asyncio.Future[T]") -> T:
    """The result of work in a thread. A caller that is cancelled is so only after the work has ended: a thread cannot
    be stopped, and whoever comes next must not meet files that it is still changing."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
    if cancelled is not None:
        raise cancelled
    return work.result()


class RealClock:
    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class RealFile:
    __slots__ = ("_end", "_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd
        self._end = os.fstat(fd).st_size

    def append(self, buffers: Sequence[Buffer]) -> int:
        total = sum(map(len, buffers))
        try:
            written = os.pwritev(self._fd, buffers, self._end)
            while written < total:
                written += os.pwrite(self._fd, b"".join(buffers)[written:], self._end + written)
        except OSError:
            os.ftruncate(self._fd, self._end)
            raise
        self._end += total
        return total

    def write_at(self, position: int, data: Buffer) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, position)
            view, position = view[written:], position + written
        self._end = max(self._end, position)

    def read(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        while len(data) < size and (more := os.pread(self._fd, size - len(data), position + len(data))):
            data += more
        return data

    def read_now(self, position: int, size: int) -> Buffer | None:
        size = min(size, self._end - position)
        if size <= 0:
            return b""
        buffer = buffer_pool.take(size)
        try:
            got = os.preadv(self._fd, [buffer], position, os.RWF_NOWAIT)
        except BlockingIOError:
            return None
        except OSError:  # a file system without RWF_NOWAIT
            return self.read(position, size)
        return buffer if got == size else None

    def size(self) -> int:
        return self._end

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)
        self._end = size

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _open_own(path: str, flags: int) -> int:
    return os.open(path, flags, OWN_FILE)


class RealLock:
    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def close(self) -> None:
        os.close(self._fd)


class RealDisk:
    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(path, flags, OWN_FILE))

    def read_file(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def replace_file(self, path: str, data: bytes) -> None:
        with open(path + ".tmp", "wb", opener=_open_own) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".tmp", path)
        self.sync_folder(os.path.dirname(path))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def names(self, folder: str) -> list[str]:
        return sorted(os.listdir(folder))

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def make_folder(self, path: str, *, private: bool = False) -> None:
        os.makedirs(path, exist_ok=True)
        if private:
            with contextlib.suppress(PermissionError):  # whose folder it is has to see to that
                os.chmod(path, OWN_FOLDER)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def remove_folder(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(path)

    def sync_folder(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: str) -> int:
        return shutil.disk_usage(path).free

    def total_bytes(self, path: str) -> int:
        return shutil.disk_usage(path).total

    def lock(self, path: str) -> RealLock:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, OWN_FILE)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind that Apache Kafka takes and respects
        except OSError:
            os.close(fd)
            raise
        return RealLock(fd)


class RealThreads:
    def __init__(self, threads_max: int) -> None:
        self._pool = ThreadPoolExecutor(threads_max, thread_name_prefix="ottla-io")

    def run(self, work: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)


@dataclass(frozen=True, slots=True)
class System:
    clock: Clock = field(default_factory=RealClock)
    disk: Disk = field(default_factory=RealDisk)
    random: Random = field(default_factory=SystemRandom)
    threads: Threads = field(default_factory=lambda: RealThreads(threads_max=8))

    def new_uuid(self) -> uuid.UUID:
        """A random id whose base64 form does not begin with '-', as Kafka's tools require."""
        while True:
            candidate = uuid.UUID(int=self.random.getrandbits(128), version=4)
            if not uuid_text(candidate).startswith("-"):
                return candidate


NO_MORE_FILES = (errno.EMFILE, errno.ENFILE)
FILES_MIN = 96  # below, a node may not get through its own start
OTHER_FILES = 64  # of gRPC, worker processes, the metadata log, and files that are open for a moment


@dataclass(frozen=True, slots=True)
class FileShares:
    """How the files that a process may open are shared out: the logs' part cannot be taken by connections."""

    logs: int
    connections: int

    @classmethod
    def of(cls, limit: int, *, logs_wanted: int) -> "FileShares":
        available = max(limit - OTHER_FILES, 32)
        logs = min(logs_wanted, available // 2)
        return cls(logs, available - logs)


def file_limit() -> int:
    """What this process may open now."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def raise_file_limit() -> None:
    """As far as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def files_problem(limit: int, *, logs_wanted: int) -> str | None:
    """What to do when fewer files than a quarter of what the logs want are theirs. Raises Refusal when a node cannot
    even start."""
    if limit < FILES_MIN:
        raise Refusal(
            f"only {limit} files may be open (`ulimit -Hn`): a broker needs at least {FILES_MIN}, and one more for "
            "every connection and partition in use; raise the limit"
        )
    logs = FileShares.of(limit, logs_wanted=logs_wanted).logs
    if logs * 4 >= logs_wanted:
        return None
    return (
        f"{limit} files may be open (`ulimit -Hn`): {logs} are for logs, where ottla.open.files.max is {logs_wanted}, "
        f"and the others for connections; raise the limit to {2 * logs_wanted + OTHER_FILES} for many partitions or "
        "clients"
    )


def give_free_memory_back() -> None:
    """What the allocator keeps of memory that nobody uses goes back to the system. Blocking, for milliseconds."""
    with contextlib.suppress(OSError, AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
