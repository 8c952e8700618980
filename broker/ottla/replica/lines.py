"""Batches that cannot be appended as they come: they wait in line, so that they are appended in the order they came."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["Lines"]

Found = TypeVar("Found")


class Lines:
    """Of one partition. Whoever is in line keeps its place even when its client leaves."""

    __slots__ = ("preparation", "preparing", "verifying")

    def __init__(self) -> None:
        self.preparation = asyncio.Lock()
        self.preparing = 0
        """Batches that are opened before they are appended; while there are any, all others queue behind them."""
        self.verifying: dict[int, asyncio.Task[Any]] = {}
        """By producer: the last of its batches that wait for the coordinator's word. Others do not wait for them."""

    def prepare(self, preparing: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Start the preparation of a batch."""
        self.preparing += 1
        task = asyncio.get_running_loop().create_task(preparing)
        task.add_done_callback(self._prepared)
        return task

    def _prepared(self, _: "asyncio.Task[None]") -> None:
        self.preparing -= 1

    def verify(self, producer_id: int, verifying: Coroutine[None, None, Found]) -> "asyncio.Task[Found]":
        """Run this when the producer's earlier batches are through."""
        before = self.verifying.get(producer_id)

        async def after() -> Found:
            if before is not None and not before.done():
                await asyncio.wait([before])
            return await verifying

        task = self.verifying[producer_id] = asyncio.get_running_loop().create_task(after())
        task.add_done_callback(lambda _: self._verified(producer_id, task))
        return task

    def _verified(self, producer_id: int, task: "asyncio.Task[Any]") -> None:
        if self.verifying.get(producer_id) is task:
            del self.verifying[producer_id]
