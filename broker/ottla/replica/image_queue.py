"""Images that wait to be applied, one after the other, and waiters for that."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image

__all__ = ["ImageQueue"]


class ImageQueue:
    def __init__(self, apply: Callable[[Image, Changes], Awaitable[None]]) -> None:
        self._apply = apply
        self._todo: deque[tuple[Image, Changes]] = deque()
        self._work: asyncio.Task[None] | None = None
        self._received = 0
        self._done = 0
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def put(self, image: Image, changes: Changes) -> None:
        self._received += 1
        self._todo.append((image, changes))
        if self._work is None:
            self._work = asyncio.ensure_future(self._catch_up())

    async def settled(self) -> None:
        """Wait until every image that was put so far is applied."""
        if self._done < self._received:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self._received, future))
            await future

    async def _catch_up(self) -> None:
        try:
            while self._todo:
                await self._apply(*self._todo.popleft())
                self._done += 1
                self._settle()
        finally:
            self._work = None

    def _settle(self) -> None:
        ready = [future for wanted, future in self._waiting if wanted <= self._done]
        self._waiting = [pair for pair in self._waiting if pair[0] > self._done]
        for future in ready:
            if not future.done():
                future.set_result(None)
