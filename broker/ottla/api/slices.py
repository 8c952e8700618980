"""Long work in slices: the loop serves others between them, and what is made is encoded as it comes."""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, TypeVar

from ottla.api.call import Call
from ottla.wire.writer import EncodedArray

__all__ = ["Pace", "each", "encoded", "paced"]

SLICE_SECONDS = 0.003
JOINED_PARTS = 2_000

T = TypeVar("T")


class Pace:
    """After each element, `if pace.is_due: await pace.rest()` gives the loop to others whenever a slice is over."""

    __slots__ = ("_until",)

    def __init__(self) -> None:
        self._until = time.perf_counter() + SLICE_SECONDS

    @property
    def is_due(self) -> bool:
        return time.perf_counter() >= self._until

    async def rest(self) -> None:
        await asyncio.sleep(0)
        self._until = time.perf_counter() + SLICE_SECONDS


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    pace = Pace()
    for item in items:
        yield item
        if pace.is_due:
            await pace.rest()


async def encoded(call: Call, path: tuple[str, ...], items: AsyncIterable[Any]) -> EncodedArray:
    """The array at `path` of the response, for `call.reply`: the items are not kept."""
    write = call.api.element_writer(call.version, path)
    parts: list[bytes] = []
    done: list[bytes] = []
    count = 0
    async for item in items:
        write(parts, item)
        count += 1
        if len(parts) >= JOINED_PARTS:
            done.append(b"".join(parts))
            parts.clear()
    return EncodedArray(count, b"".join([*done, *parts]))


async def each(items: Iterable[T], line: Callable[[T], Awaitable[Any]]) -> AsyncIterator[Any]:
    """The lines of a response, one after the other."""
    async for item in paced(items):
        yield await line(item)
