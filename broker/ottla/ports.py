"""What a node asks of its surroundings, as protocols: clock, files, disk. Pure.

`ottla.system` has the real ones, the simulator its own; code that decides knows only these.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

__all__ = ["Buffer", "Clock", "Disk", "File", "Lock", "Part", "Random", "Region"]

Buffer = bytes | bytearray | memoryview
T = TypeVar("T")


class Random(Protocol):
    """Chance, as far as decisions use it."""

    def random(self) -> float: ...
    def sample(self, population: Sequence[T], k: int) -> list[T]: ...


class Clock(Protocol):
    def wall_ms(self) -> int:
        """Milliseconds since the epoch: for timestamps of records and files."""

    def monotonic(self) -> float:
        """Seconds that never go back: for timeouts."""


class File(Protocol):
    """An open file. Every call may raise OSError; a failed `sync` must never be retried."""

    def append(self, buffers: Sequence[Buffer]) -> int:
        """Write all buffers at the end, whole or not at all (a partial write is cut off again); the bytes written."""

    def write_at(self, position: int, data: Buffer) -> None: ...
    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file. May block on the disk."""

    def read_now(self, position: int, size: int) -> Buffer | None:
        """The same, if it is all in memory; None when the disk would have to be asked."""

    def size(self) -> int: ...
    def truncate(self, size: int) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


class Region(Protocol):
    """Part of an open file, to be read when it is sent. Reading may raise OSError."""

    def __len__(self) -> int: ...
    def read_now(self, offset: int, size: int) -> Buffer | None:
        """None when the disk would have to be asked; fewer bytes when the file has become shorter."""

    def read(self, offset: int, size: int) -> bytes:
        """The same, with the disk. May block."""

    @property
    def failed(self) -> Callable[[OSError], object]:
        """To be called when reading raised: whoever owns the file takes it out of use."""


Part = Buffer | Region
"""Of an answer."""


class Lock(Protocol):
    """A file that this process alone holds, until `close` or its end."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A file system. Paths are strings. Files are made for their own user only: they hold what clients write."""

    def open(self, path: str, *, create: bool = False) -> File: ...
    def read_file(self, path: str) -> bytes: ...
    def replace_file(self, path: str, data: bytes) -> None:
        """Write a whole file atomically and durably: temporary file, sync, rename, sync of the folder."""

    def exists(self, path: str) -> bool: ...
    def is_folder(self, path: str) -> bool: ...
    def names(self, folder: str) -> list[str]:
        """Sorted names in a folder."""

    def modified_ms(self, path: str) -> int: ...
    def make_folder(self, path: str, *, private: bool = False) -> None:
        """With parents; no error when it exists. `private`: from now on no other user may look into it."""

    def rename(self, old: str, new: str) -> None: ...
    def remove(self, path: str) -> None:
        """A file; no error when it is gone."""

    def remove_folder(self, path: str) -> None:
        """With everything in it; no error when it is gone."""

    def sync_folder(self, path: str) -> None: ...
    def free_bytes(self, path: str) -> int: ...
    def total_bytes(self, path: str) -> int: ...
    def lock(self, path: str) -> Lock:
        """Hold a file, made if need be. BlockingIOError when somebody else holds it."""
