"""A file that grows to a size and is put aside then, so many times."""

import contextlib
import os
from pathlib import Path
from typing import IO

__all__ = ["RotatedFile"]


class RotatedFile:
    """`path`, and older ones as `path.1`, `path.2`… Only its owner may read it. OSError when it cannot be opened."""

    def __init__(self, path: Path, size_bytes_max: int, files_max: int) -> None:
        self._path = path
        self._size_bytes_max = size_bytes_max
        self._files_max = files_max
        self._file = self._open()
        self._size = self._file.tell()

    def _open(self) -> IO[bytes]:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return os.fdopen(descriptor, "ab", buffering=0)

    def write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._size_bytes_max:
            self._rotate()
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._size += len(data)

    def _rotate(self) -> None:
        self._file.close()
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._files_max))]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
        if len(names) == 1:
            self._path.unlink(missing_ok=True)
        self._file = self._open()
        self._size = 0

    def close(self) -> None:
        self._file.close()
