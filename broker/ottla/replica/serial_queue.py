"""Batches that cannot be appended at once wait in queues, so that they are appended in arrival order."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["PendingBatches", "SerialQueue"]

Found = TypeVar("Found")


class SerialQueue:
    """Work that runs one after the other for each key. Queued work runs even if its client disconnects."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[int, asyncio.Task[Any]] = {}

    def __contains__(self, key: int) -> bool:
        """Whether the key has unfinished work."""
        return key in self._last

    def __bool__(self) -> bool:
        return bool(self._last)

    def join(self, key: int, work: Coroutine[Any, Any, Found]) -> "asyncio.Task[Found]":
        """Run this after the key's earlier work."""
        before = self._last.get(key)

        async def after() -> Found:
            if before is not None and not before.done():
                await asyncio.wait([before])
            return await work

        task = self._last[key] = asyncio.get_running_loop().create_task(after())
        task.add_done_callback(lambda _: self._done(key, task))
        return task

    def _done(self, key: int, task: "asyncio.Task[Any]") -> None:
        if self._last.get(key) is task:
            del self._last[key]


class PendingBatches:
    """The queues of one partition."""

    __slots__ = ("preparing", "verifying")

    def __init__(self) -> None:
        self.preparing = SerialQueue()
        """By client connection: batches that the worker process validates before they are appended. Kafka promises
        order only within a connection, so batches of other connections do not wait."""
        self.verifying = SerialQueue()
        """By producer: batches that wait for the coordinator's verification."""
