"""Limits searches of logs by time: they may take long, and flushes need the threads too."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from ottla.system import Threads, finished

__all__ = ["Lookups"]

T = TypeVar("T")


class Lookups:
    """One at a time over all connections."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._lock = asyncio.Lock()

    async def run(self, own: asyncio.Lock, search: Callable[..., T], *arguments: object) -> T:
        """`own` is of the request: one of its searches waits for the others' turn, so that those of other requests come
        in between. A client that goes does not let the next search begin before the thread is free."""
        async with own, self._lock:
            return await finished(self._threads.run(search, *arguments))
