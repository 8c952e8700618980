"""Batches that cannot be appended as they come wait in line, so that they are appended in the order they came."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["Line", "Lines"]

Found = TypeVar("Found")


class Line:
    """Work that is done one after the other for each key. Whoever is in line keeps its place even when its client
    leaves."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: dict[int, asyncio.Task[Any]] = {}

    def __contains__(self, key: int) -> bool:
        """Whether there is work of this key that is not done."""
        return key in self._last

    def __bool__(self) -> bool:
        return bool(self._last)

    def join(self, key: int, work: Coroutine[Any, Any, Found]) -> "asyncio.Task[Found]":
        """Do this when the key's earlier work is done."""
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


class Lines:
    """Of one partition."""

    __slots__ = ("preparing", "verifying")

    def __init__(self) -> None:
        self.preparing = Line()
        """By client connection: batches that are opened elsewhere before they are appended. Kafka promises an order
        only within a connection, so the batches of others do not wait for them."""
        self.verifying = Line()
        """By producer: batches that wait for the coordinator's word."""
