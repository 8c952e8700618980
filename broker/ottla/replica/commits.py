"""Waiters for offsets to be committed."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from ottla.errors import Code, KafkaError

__all__ = ["Commits", "OnCommit"]

OnCommit: TypeAlias = Callable[[Code], None]


class Commits:
    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[int, OnCommit]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, last_offset: int, on_commit: OnCommit) -> None:
        """`on_commit` is called when the high watermark passes the offset; with an error code when this broker stops
        leading first."""
        self._waiting.append((last_offset, on_commit))

    def wait(self, last_offset: int) -> "asyncio.Future[None]":
        """The same as a future, which wakes its task some turns of the loop later."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.add(last_offset, lambda code: _end(future, code))
        return future

    def resolve(self, high_watermark: int) -> None:
        waiting, self._waiting = self._waiting, []
        still_waiting = []
        for entry in waiting:
            if entry[0] >= high_watermark:
                still_waiting.append(entry)
            else:
                entry[1](Code.none)
        self._waiting = still_waiting + self._waiting

    def fail(self, code: Code) -> None:
        waiting, self._waiting = self._waiting, []
        for _, on_commit in waiting:
            on_commit(code)


def _end(future: "asyncio.Future[None]", code: Code) -> None:
    if future.done():
        return
    if code is Code.none:
        future.set_result(None)
    else:
        future.set_exception(KafkaError(code))
