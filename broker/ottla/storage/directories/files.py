"""A bounded number of open files, opened when first used.

A Handle is one file by its path; its `opened` is None until the file is needed, and again after eviction. Eviction only
drops a reference; the file is closed with the last reference to its OpenFile. So the loop and the threads use files
without a lock and never see a closed or reused descriptor. Keep the OpenFile in a local variable while its `file` is
used.
"""

from threading import Lock

from ottla.ports import Disk, File
from ottla.system import NO_MORE_FILES

__all__ = ["FileCache", "Handle", "OpenFile"]


class OpenFile:
    """Closes its file with the last reference."""

    __slots__ = ("file",)

    def __init__(self, file: File) -> None:
        self.file = file

    def __del__(self) -> None:
        self.file.close()


class Handle:
    """One file, open or not. `recent` is set by every use and protects it from the next eviction."""

    __slots__ = ("opened", "path", "recent")

    def __init__(self, path: str) -> None:
        self.path = path
        self.opened: OpenFile | None = None
        self.recent = False

    def moved_to(self, path: str) -> None:
        """The file was renamed; an open one stays open."""
        self.path = path


class FileCache:
    """Keeps at most `limit` files open, by second chance: an approximation of LRU with one attribute write per use."""

    def __init__(self, disk: Disk, limit: int) -> None:
        assert limit > 0
        self.disk = disk
        self._limit = limit
        self._lock = Lock()
        self._handles: dict[Handle, None] = {}  # handles with an open file, in eviction order

    def __len__(self) -> int:
        return len(self._handles)

    def open(self, handle: Handle, *, create: bool = False) -> OpenFile:
        """The handle's open file. Any thread."""
        handle.recent = True
        if opened := handle.opened:
            return opened
        with self._lock:
            if opened := handle.opened:
                return opened
            opened = self._open(handle.path, create)
            self._evict(self._limit - 1)
            handle.opened = opened
            self._handles[handle] = None
            return opened

    def _open(self, path: str, create: bool) -> OpenFile:
        """When the process has no descriptors left, half of the open files are evicted."""
        try:
            return OpenFile(self.disk.open(path, create=create))
        except OSError as error:
            if error.errno not in NO_MORE_FILES or not self._handles:
                raise
        self._evict(len(self._handles) // 2)
        return OpenFile(self.disk.open(path, create=create))

    def forget(self, handle: Handle) -> None:
        """Drop the open file: before another file replaces it at this path, or when it is no longer needed."""
        with self._lock:
            self._handles.pop(handle, None)
            handle.opened = None

    def _evict(self, limit: int) -> None:
        spared = len(self._handles)
        while len(self._handles) > limit:
            handle = next(iter(self._handles))
            del self._handles[handle]
            if handle.recent and spared > 0:
                handle.recent = False
                self._handles[handle] = None
                spared -= 1
            else:
                handle.opened = None
