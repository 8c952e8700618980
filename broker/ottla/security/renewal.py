"""Certificates, keys, trust and users from files, taken anew while clients are connected.

Files are looked at again and again, by name and through links: Kubernetes swaps a link to a folder, so that there is
another file under the same name, though none has changed. What cannot be used is told once, and the old one stays.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from ottla.errors import Refusal
from ottla.system import Threads

__all__ = ["Renewable", "Renewal"]

log = logging.getLogger("ottla.security")

T = TypeVar("T")
State = tuple[tuple[object, ...] | None, ...]


class Renewable(Protocol[T]):
    what: str
    """For the log."""

    def files(self) -> Sequence[str]: ...

    def load(self) -> T:
        """Reads them, in a thread. Raises Refusal."""

    def take(self, loaded: T) -> None:
        """It is in force from now on."""

    def refused(self) -> None:
        """What is there cannot be used."""


class Renewal:
    """`interval_s` between two looks. The first look loads everything: dynamic settings may differ from the file's."""

    def __init__(self, *, threads: Threads, interval_s: float) -> None:
        self._items: list[Renewable[Any]] = []
        self._threads = threads
        self._interval_s = interval_s
        self._seen: dict[int, State] = {}
        self._hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, item: "Renewable[Any]") -> None:
        """Before the start."""
        self._items.append(item)

    def start(self) -> None:
        if self._items:
            self._task = asyncio.ensure_future(self._run())

    def hurry(self) -> None:
        """Settings have changed: load everything now, whether files have changed or not."""
        self._hurried.set()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            for number, item in enumerate(self._items):
                await self._look(number, item)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._hurried.wait()
            if self._hurried.is_set():
                self._hurried.clear()
                self._seen.clear()

    async def _look(self, number: int, item: "Renewable[Any]") -> None:
        state = await self._threads.run(state_of, item.files())
        if self._seen.get(number) == state:
            return
        self._seen[number] = state  # of before it is loaded: what changes meanwhile is loaded at the next look
        try:
            loaded = await self._threads.run(item.load)
        except Refusal as refusal:
            item.refused()
            log.error("%s: the new one is not taken, the old one stays: %s", item.what, refusal)
            return
        except Exception:
            item.refused()
            log.exception("%s: the new one cannot be read, the old one stays", item.what)
            return
        item.take(loaded)


def state_of(paths: Sequence[str]) -> State:
    """What tells whether there is something else under these names."""
    return tuple(map(_state, paths))


def _state(path: str) -> tuple[object, ...] | None:
    try:
        stat = os.stat(path)
        return os.path.realpath(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
    except OSError:
        return None
