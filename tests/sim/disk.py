"""A file system in memory that knows what is only in its cache.

    Platter         what a node's disk holds, over all lives of the node
    SimDisk         one process's view of it (ottla.system.Disk); useless after the process ended

After a crash of the process everything written is there. After a power loss: of every file what was synced and a torn
part of what was written since; of names, those that a sync of their folder made durable and, as a journal keeps order,
some first ones of the others. A folder whose own name is lost takes its files with it.
"""

import errno
from collections.abc import Callable, Sequence
from random import Random

from ottla.ports import Buffer

__all__ = ["MORE", "ROOT", "Crash", "Platter", "SimDisk", "Wrote"]

ROOT, MORE = "/data", "/more"
Wrote = Callable[[str, bytes, bool], None]
"""Called with a path and what is written there: before it is done (False), and after (True)."""


class Crash(BaseException):
    """The process ended in the middle of a call."""


class Inode:
    __slots__ = ("data", "dirty_from", "durable", "modified_ms")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.dirty_from: int | None = None
        self.modified_ms = modified_ms

    def touched(self, position: int) -> None:
        self.dirty_from = position if self.dirty_from is None else min(self.dirty_from, position)

    def sync(self) -> None:
        if self.dirty_from is not None:
            self.durable[self.dirty_from :] = self.data[self.dirty_from :]
            self.dirty_from = None

    def lose_power(self, random: Random) -> None:
        """The old content, the new one, or the new one torn, perhaps with zeros where data did not get to the disk."""
        if self.dirty_from is None:
            return
        fate = random.random()
        if fate < 0.3:
            self.data = bytearray(self.durable)
        elif fate < 0.85:
            kept = random.randint(min(self.dirty_from, len(self.data)), len(self.data))
            zeros = bytes(len(self.data) - kept) if fate > 0.75 else b""
            self.data = self.data[:kept] + zeros
        self.durable = bytearray(self.data)
        self.dirty_from = None


Change = tuple[str, str, Inode | None]  # path, path it was renamed from, what it is then: None is gone


class Platter:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.files: dict[str, Inode] = {}
        self.full: set[str] = set()  # log dirs on disks without space
        self.coldness = 0.0  # how often what is read is not in memory
        self.cold_random = Random(0)
        self.folders: set[str] = {"/", ROOT, MORE}
        self._durable_files: dict[str, Inode] = {}
        self._durable_folders: set[str] = {"/", ROOT, MORE}
        self._pending: list[tuple[set[str], Callable[[dict[str, Inode], set[str]], None]]] = []  # with folders

    def change(self, paths: Sequence[str], act: Callable[[dict[str, Inode], set[str]], None]) -> None:
        """Of names: at once in the cache, on the disk when one of the folders is synced.

        A folder that was renamed made way: whatever is synced under its old name since then is of another one, and
        must not find the old one still there.
        """
        act(self.files, self.folders)
        made_way = set(paths[:-1])
        self._pending.append((made_way | {_parent(path) for path in paths}, act))

    def sync_folder(self, folder: str) -> None:
        left = []
        for parents, act in self._pending:
            if folder in parents:
                act(self._durable_files, self._durable_folders)
            else:
                left.append((parents, act))
        self._pending = left

    def lose_power(self) -> None:
        kept = self.random.randint(0, len(self._pending))
        for _, act in self._pending[:kept]:
            act(self._durable_files, self._durable_folders)
        self._pending.clear()
        folders = {each for each in self._durable_folders if self._is_reachable(each)}
        files = {path: inode for path, inode in self._durable_files.items() if _parent(path) in folders}
        for inode in files.values():
            inode.lose_power(self.random)
        self.files, self.folders = dict(files), set(folders)
        self._durable_files, self._durable_folders = files, folders

    def _is_reachable(self, folder: str) -> bool:
        return folder == "/" or (folder in self._durable_folders and self._is_reachable(_parent(folder)))


class SimDisk:
    """`crash_in` counts operations down to the end of the process; `fail_syncs` lets the next sync fail for good."""

    def __init__(self, platter: Platter, *, now_ms: Callable[[], int], on_crash: Callable[[], None]) -> None:
        self._platter = platter
        self._now_ms = now_ms
        self._on_crash = on_crash
        self._locked: set[str] = set()
        self.is_gone = False
        self.crash_in: int | None = None
        self.fail_syncs = False
        self.watch: Wrote | None = None

    def observed(self, path: str, data: Buffer, *, is_done: bool) -> None:
        """Whoever watches may end the process here."""
        if self.watch is not None:
            self.watch(path, bytes(data), is_done)
            if self.is_gone:
                raise Crash

    def act(self) -> None:
        """Before every operation that changes something."""
        if self.is_gone:
            raise Crash
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in <= 0:
                self._on_crash()
                raise Crash

    def sync(self, inode: Inode) -> None:
        self.act()
        if self.fail_syncs:
            raise OSError(errno.EIO, "fsync failed")
        inode.sync()

    def is_full(self, root: str) -> bool:
        return root in self._platter.full

    def is_cold(self) -> bool:
        platter = self._platter
        return platter.coldness > 0.0 and platter.cold_random.random() < platter.coldness

    def now_ms(self) -> int:
        return self._now_ms()

    def open(self, path: str, *, create: bool = False) -> "SimFile":
        if path not in self._platter.files:
            if not create or _parent(path) not in self._platter.folders:
                raise FileNotFoundError(errno.ENOENT, "no such file", path)
            self.act()
            self._link(path, Inode(self._now_ms()))
        return SimFile(self, self._platter.files[path], path)

    def _link(self, path: str, inode: Inode) -> None:
        self._platter.change([path], lambda files, folders: files.__setitem__(path, inode))

    def read_file(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def replace_file(self, path: str, data: bytes) -> None:
        temporary = self.open(path + ".tmp", create=True)
        temporary.truncate(0)
        temporary.append([data])
        temporary.sync()
        self.rename(path + ".tmp", path)
        self.sync_folder(_parent(path))

    def exists(self, path: str) -> bool:
        path = path.rstrip("/")
        return path in self._platter.files or path in self._platter.folders

    def is_folder(self, path: str) -> bool:
        return path.rstrip("/") in self._platter.folders

    def names(self, folder: str) -> list[str]:
        folder = folder.rstrip("/")
        if folder not in self._platter.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", folder)
        everything = (*self._platter.files, *self._platter.folders)
        return sorted(path.rpartition("/")[2] for path in everything if path != "/" and _parent(path) == folder)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def make_folder(self, path: str, *, private: bool = False) -> None:
        path = path.rstrip("/")
        if path not in self._platter.folders:
            self.make_folder(_parent(path))
            self.act()
            self._platter.change([path], lambda files, folders: folders.add(path))

    def rename(self, old: str, new: str) -> None:
        if not self.exists(old):
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        self.act()
        if old in self._platter.folders:
            self._platter.sync_folder(old)  # names in it go along, and are not left for another folder of its old name
        self._platter.change([old, new], lambda files, folders: _rename(files, folders, old, new))

    def remove(self, path: str) -> None:
        if path in self._platter.files:
            self.act()
            self._platter.change([path], lambda files, folders: files.pop(path, None) and None)

    def remove_folder(self, path: str) -> None:
        if path in self._platter.folders:
            self.act()
            self._platter.change([path], lambda files, folders: _remove_folder(files, folders, path))

    def sync_folder(self, path: str) -> None:
        self.act()
        if path.rstrip("/") not in self._platter.folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", path)
        self._platter.sync_folder(path.rstrip("/"))

    def free_bytes(self, path: str) -> int:
        return 0 if self.is_full(path) else 1 << 40

    def total_bytes(self, path: str) -> int:
        return 1 << 41

    def lock(self, path: str) -> "SimLock":
        """Every process has its node's disk for itself: the lock of a dead one is gone with it."""
        if path in self._locked:
            raise BlockingIOError(errno.EWOULDBLOCK, "locked", path)
        self._locked.add(path)
        return SimLock(self._locked, path)

    def _inode(self, path: str) -> Inode:
        if path not in self._platter.files:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return self._platter.files[path]


class SimLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held, self._path = held, path

    def close(self) -> None:
        self._held.discard(self._path)


class SimFile:
    def __init__(self, disk: SimDisk, inode: Inode, path: str) -> None:
        self._disk, self._inode, self._path = disk, inode, path
        self._root = path[: path.index("/", 1)]

    def append(self, buffers: Sequence[Buffer]) -> int:
        data = b"".join(buffers)
        self.write_at(len(self._inode.data), data)
        return len(data)

    def write_at(self, position: int, data: Buffer) -> None:
        self._disk.act()
        self._disk.observed(self._path, data, is_done=False)
        size = len(data)
        if self._disk.is_full(self._root):
            data = data[: size // 2]  # as much as there was space for
        content = self._inode.data
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        self._inode.touched(min(position, len(content)))
        content[position : position + len(data)] = data
        self._inode.modified_ms = self._disk.now_ms()
        if len(data) < size:
            raise OSError(errno.ENOSPC, "no space left on device")
        self._disk.observed(self._path, data, is_done=True)

    def read(self, position: int, size: int) -> bytes:
        return bytes(memoryview(self._inode.data)[position : position + size])

    def read_now(self, position: int, size: int) -> bytes | None:
        return None if self._disk.is_cold() else self.read(position, size)

    def size(self) -> int:
        return len(self._inode.data)

    def truncate(self, size: int) -> None:
        self._disk.act()
        content = self._inode.data
        if size != len(content):
            self._inode.touched(min(size, len(content)))
            if size < len(content):
                del content[size:]
            else:
                content.extend(bytes(size - len(content)))

    def sync(self) -> None:
        self._disk.sync(self._inode)

    def close(self) -> None:
        pass


def _parent(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0] or "/"


def _rename(files: dict[str, Inode], folders: set[str], old: str, new: str) -> None:
    if old in files:
        files[new] = files.pop(old)
    elif old in folders:
        folders.discard(old)
        folders.add(new)
        for path in [path for path in files if path.startswith(old + "/")]:
            files[new + path[len(old) :]] = files.pop(path)


def _remove_folder(files: dict[str, Inode], folders: set[str], path: str) -> None:
    folders.difference_update({each for each in folders if each == path or each.startswith(path + "/")})
    for name in [name for name in files if name.startswith(path + "/")]:
        del files[name]
