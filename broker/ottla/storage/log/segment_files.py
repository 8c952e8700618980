"""The files of one segment: names, handle, creation and deletion.

A thread may rename the files while others open them: `naming` guards the names and is held to open a file by its name.
An open file needs no name.
"""

from threading import Lock

from ottla.ports import Disk, File
from ottla.storage.core import names
from ottla.storage.core.aborted import AbortedIndex, AbortedTransaction
from ottla.storage.directories.files import FileCache, Handle, OpenFile
from ottla.storage.log import aborted_index, snapshots

__all__ = ["FILE_KINDS", "SegmentFiles", "sync_path"]

INDEX_KINDS = (names.INDEX, names.TIME_INDEX, names.TXN_INDEX)
FILE_KINDS = (names.LOG, *INDEX_KINDS)


class SegmentFiles:
    """`<base offset>.log` and its companions. `sealed`: appends have ended and the index files are complete."""

    __slots__ = (
        "aborted",
        "base_offset",
        "files",
        "folder",
        "handle",
        "indexes_unsynced",
        "naming",
        "sealed",
        "suffix",
    )

    def __init__(self, folder: str, base_offset: int, *, files: FileCache, suffix: str) -> None:
        self.folder = folder
        self.base_offset = base_offset
        self.files = files
        self.suffix = suffix
        self.naming = Lock()
        self.sealed = False
        self.indexes_unsynced = False  # written, perhaps only to the page cache
        self.aborted = AbortedIndex()
        self.handle = Handle(self.path(names.LOG))

    @property
    def disk(self) -> Disk:
        return self.files.disk

    def path(self, kind: str) -> str:
        return f"{self.folder}/{names.name(self.base_offset, kind)}{self.suffix}"

    def paths(self) -> list[str]:
        return [self.path(kind) for kind in FILE_KINDS]

    def opened(self) -> OpenFile:
        """The .log file; keep the result while its `file` is used. Any thread."""
        return self.handle.opened or self._open()

    def _open(self) -> OpenFile:
        with self.naming:
            return self.files.open(self.handle)

    def mark_sealed(self) -> None:
        """Called after its indexes were written."""
        self.sealed = True

    def create(self) -> None:
        """Create an empty .log file; files of an earlier segment with this name are removed."""
        self.files.open(self.handle, create=True).file.truncate(0)

    def sync(self, *, with_indexes: bool = False) -> None:
        """Sync the data, and the indexes of a sealed segment. Any thread; never retried after an OSError."""
        self.opened().file.sync()
        if self.sealed or with_indexes:
            self.sync_indexes()
        elif len(self.aborted):
            self._sync_index(names.TXN_INDEX)

    def sync_indexes(self) -> None:
        self.indexes_unsynced = False
        for kind in INDEX_KINDS:
            self._sync_index(kind)

    def _sync_index(self, kind: str) -> None:
        with self.naming:
            file = _open_existing(self.disk, self.path(kind))
        _sync_and_close(file)

    # aborted transactions whose markers are in this segment

    def load_aborted(self) -> None:
        self.aborted = AbortedIndex(aborted_index.read(self.disk, self.path(names.TXN_INDEX)))

    def note_aborted(self, one: AbortedTransaction) -> None:
        """A marker in this segment aborted the transaction: write it to the index."""
        self.aborted.append(one)
        self.indexes_unsynced = True
        file = self.disk.open(self.path(names.TXN_INDEX), create=True)
        try:
            file.append([aborted_index.encode([one])])
        finally:
            file.close()

    def found_aborted(self, one: AbortedTransaction) -> None:
        """Recovery found a marker in this segment that aborted the transaction; `write_aborted` writes the file."""
        self.aborted.append(one)

    def write_aborted(self) -> None:
        """Replace the file, not durably; no file if there is nothing to write."""
        self.indexes_unsynced = True
        path = self.path(names.TXN_INDEX)
        self.disk.remove(path)
        if len(self.aborted):
            file = self.disk.open(path, create=True)
            try:
                file.append([aborted_index.encode(self.aborted)])
            finally:
                file.close()

    def moved_to(self, folder: str) -> None:
        """The folder was renamed."""
        with self.naming:
            self.folder = folder
            self.handle.moved_to(self.path(names.LOG))

    def rename(self, suffix: str) -> None:
        """Rename all files to another suffix. Open files stay usable. Any thread."""
        with self.naming:
            old_paths = self.paths()
            self.suffix = suffix
            for old, new in zip(old_paths, self.paths(), strict=True):
                if self.disk.exists(old):
                    self.disk.rename(old, new)
            self.handle.moved_to(self.path(names.LOG))

    def mark_deleted(self, *, keep_snapshot: bool = False) -> None:
        """Rename the files to .deleted, so that current readers can finish. Blocking."""
        self.rename(names.DELETED)
        if not keep_snapshot:
            self.disk.remove(snapshots.path(self.folder, self.base_offset))
        self.files.forget(self.handle)


def sync_path(disk: Disk, path: str) -> None:
    """Sync one file, if it exists."""
    _sync_and_close(_open_existing(disk, path))


def _open_existing(disk: Disk, path: str) -> File | None:
    try:
        return disk.open(path)
    except FileNotFoundError:
        return None


def _sync_and_close(file: File | None) -> None:
    if file is not None:
        try:
            file.sync()
        finally:
            file.close()
