"""Certificates, keys, trust and users from files, taken anew while clients are connected.

Files are looked at again and again, by name and through links: Kubernetes swaps a link to a folder, so that there is
another file under the same name, though none has changed. What cannot be used is told once, and the old one stays. It
is tried again after a while, also when its files are as they were: a certificate may be valid by then, a clock be set
right, a disk answer.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from ottla.errors import Refusal
from ottla.system import Threads

__all__ = ["LOOKS_BETWEEN_TRIES", "Looks", "Renewable", "Renewal", "state_of"]

log = logging.getLogger("ottla.security")

LOOKS_BETWEEN_TRIES = 15  # of what was refused: its loading may cost a password's derivation

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


class Looks:
    """When files have to be loaded: those that have changed, and those that were refused once in a while."""

    def __init__(self, seen: State | None = None) -> None:
        self._seen = seen
        self._until_try: int | None = None
        self._told: str | None = None

    def is_due(self, state: State) -> bool:
        """`state`: of before they are loaded, so that what changes meanwhile is loaded at the next look."""
        if state != self._seen:
            self._seen, self._told, self._until_try = state, None, None
            return True
        if self._until_try is None:
            return False
        self._until_try -= 1
        return self._until_try <= 0

    def forget(self) -> None:
        """The next look loads them."""
        self._seen = None

    def refused(self, reason: str) -> bool:
        """Whether that is news."""
        is_news, self._told = reason != self._told, reason
        self._until_try = LOOKS_BETWEEN_TRIES
        return is_news

    def taken(self) -> None:
        self._told = self._until_try = None


class Renewal:
    """`interval_s` between two looks. The first look loads everything: dynamic settings may differ from the file's."""

    def __init__(self, *, threads: Threads, interval_s: float) -> None:
        self._items: list[tuple[Renewable[Any], Looks]] = []
        self._threads = threads
        self._interval_s = interval_s
        self._hurried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, item: "Renewable[Any]") -> None:
        """Before the start."""
        self._items.append((item, Looks()))

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
            for item, looks in self._items:
                await self._look(item, looks)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._hurried.wait()
            if self._hurried.is_set():
                self._hurried.clear()
                for _, looks in self._items:
                    looks.forget()

    async def _look(self, item: "Renewable[Any]", looks: Looks) -> None:
        if not looks.is_due(await self._threads.run(state_of, item.files())):
            return
        try:
            loaded = await self._threads.run(item.load)
        except Refusal as refusal:
            if looks.refused(str(refusal)):
                item.refused()
                log.error("%s: the new one is not taken, the old one stays: %s", item.what, refusal)
            return
        except Exception as error:
            if looks.refused(repr(error)):
                item.refused()
                log.exception("%s: the new one cannot be read, the old one stays", item.what)
            return
        looks.taken()
        item.take(loaded)


def state_of(paths: Sequence[str]) -> State:
    """What tells whether there is something else under these names, or whether others may read it."""
    return tuple(map(_state, paths))


def _state(path: str) -> tuple[object, ...] | None:
    try:
        stat = os.stat(path)
        return os.path.realpath(path), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
    except OSError:
        return None
