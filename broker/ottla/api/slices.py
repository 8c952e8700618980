"""Long work in slices: the loop serves others between them, and what is made is encoded as it comes.

All slices of a turn of the loop share one budget (`Pace`), however many requests work in slices. The first slice of a
request, and a small answer, are free for all. Who needs more has a `Turn`: one at a time, so that the memory it takes
is that of one. Nobody waits for anything else, such as new records, while it is his turn. An answer has a limit:
`AnswerTooLarge`.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable, Iterable
from typing import Any, TypeVar

from ottla.api.call import Call
from ottla.coordination.shard import CoordinatorShard
from ottla.errors import Code, KafkaError
from ottla.wire.chunks import Chunks
from ottla.wire.writer import EncodedArray

__all__ = [
    "AnswerTooLarge",
    "Memo",
    "Pace",
    "Turn",
    "each",
    "encoded",
    "encoded_or_refused",
    "grow",
    "lines",
    "paced",
    "sliced",
    "until_committed",
]

SLICE_SECONDS = 0.003
COUNTED_BYTES = 64 * 1024  # of an answer under construction, at once
FREE_BYTES_MAX = 256 * 1024  # of an answer that is made without a turn
LIMIT = "ottla.response.bytes.max"

T = TypeVar("T")
Memo = dict[Hashable, list[bytes]]


class AnswerTooLarge(KafkaError):
    def __init__(self, bytes_max: int) -> None:
        super().__init__(
            Code.invalid_request, f"The answer is larger than {bytes_max} bytes ({LIMIT}); ask for fewer at once"
        )


class Turn:
    """`async with Turn(lock)`; or taken by one, and given back by another, at most once."""

    __slots__ = ("_is_taken", "_lock")

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock
        self._is_taken = False

    async def take(self) -> bool:
        """False: it was taken before."""
        if self._is_taken:
            return False
        await self._lock.acquire()
        self._is_taken = True
        return True

    def give_back(self) -> None:
        if self._is_taken:
            self._is_taken = False
            self._lock.release()

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(self, *_: object) -> None:
        self.give_back()


class Pace:
    """Before each element, `if pace.is_due: await pace.rest()` gives the loop to others whenever a slice is over.

    Of one loop: there is one slice in each of its turns, for the one who works first or has waited for it. Requests
    that have not begun yet go before those that had a slice. On virtual time a slice never ends: histories replay
    exactly, however fast the machine is.
    """

    __slots__ = ("_beginning", "_begun", "_is_scheduled", "_now", "_until")

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._until: float | None = None  # nobody has worked in this turn of the loop
        self._is_scheduled = False
        self._beginning: deque[asyncio.Future[None]] = deque()
        self._begun: deque[asyncio.Future[None]] = deque()

    @property
    def is_due(self) -> bool:
        if self._until is None:
            self._until = self._now() + SLICE_SECONDS
            self._schedule()
            return False
        return self._now() >= self._until

    async def rest(self, *, begins: bool = False) -> None:
        waiting = asyncio.get_running_loop().create_future()
        (self._beginning if begins else self._begun).append(waiting)
        self._schedule()  # also when nobody has worked in this turn: the one that rests may have waited for its turn
        await waiting
        self._until = self._now() + SLICE_SECONDS

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._until, self._is_scheduled = None, False
        while self._beginning or self._begun:
            waiting = (self._beginning or self._begun).popleft()
            if not waiting.done():
                self._until = 0.0  # the slice is promised
                waiting.set_result(None)
                self._schedule()
                return


async def sliced(items: Iterable[T], pace: Pace) -> AsyncIterator[T]:
    """For one who has a turn."""
    for item in items:
        if pace.is_due:
            await pace.rest()
        yield item


async def paced(items: Iterable[T], call: Call) -> AsyncIterator[T]:
    """The turn that a long one takes is given back with `call.close`."""
    pace = call.node.pace
    for item in items:
        if pace.is_due:
            begins, call.is_under_way = not call.is_under_way, True
            if not begins:
                await _take_turn(call)
            await pace.rest(begins=begins)
        yield item


async def _take_turn(call: Call) -> None:
    if call.turn is None:
        call.turn = Turn(call.node.long_work)
    if await call.turn.take():
        await call.node.answers.until_plenty()


async def until_committed(shard: CoordinatorShard, offset: int, call: Call) -> None:
    """Others have their turn while this one has to wait."""
    if not shard.is_committed(offset):
        if call.turn is not None:
            call.turn.give_back()
        await shard.until_committed(offset)


def grow(call: Call, size: int) -> None:
    """Count what is made of an answer. AnswerTooLarge when it is too much."""
    call.made_bytes += size
    uncounted = call.made_bytes - call.counted_bytes
    if uncounted >= COUNTED_BYTES:
        call.counted_bytes = call.made_bytes
        call.node.answers.change(uncounted)
        if call.made_bytes > (bytes_max := call.node.config[LIMIT]):
            raise AnswerTooLarge(bytes_max)


async def encoded(call: Call, path: tuple[str, ...], items: AsyncIterable[Any]) -> EncodedArray:
    """The array at `path` of the response, for `call.reply`: the items are not kept. Some may be encoded already.

    Arrays inside have been counted while they were made.
    """
    write = call.api.element_writer(call.version, path)
    chunks = Chunks[bytes]()
    count, counted_bytes = 0, call.made_bytes
    async for item in items:
        parts: list[bytes] = item if isinstance(item, list) else []
        if not parts:
            write(parts, item)
        size = chunks.add(parts)
        grow(call, size - (call.made_bytes - counted_bytes))
        if call.made_bytes >= FREE_BYTES_MAX:
            await _take_turn(call)
        count, counted_bytes = count + 1, call.made_bytes
    return EncodedArray(count, chunks.finish())


async def lines(
    call: Call,
    path: tuple[str, ...],
    items: Iterable[T],
    line: Callable[[T], Awaitable[Any]],
    *,
    refused: Callable[[T, KafkaError], Any],
    key: Callable[[T], Hashable],
    memo: Memo | None = None,
) -> AsyncIterator[list[bytes]]:
    """For `encoded`: the line of each item, or why there is none. The same item again gives the same bytes."""
    write = call.api.element_writer(call.version, path)
    memo = {} if memo is None else memo
    async for item in paced(items, call):
        known = memo.get(same := key(item))
        if known is None:
            try:
                made = await line(item)
            except AnswerTooLarge:
                raise
            except KafkaError as error:
                made = refused(item, error)
            parts: list[bytes] = []
            write(parts, made)
            (chunks := Chunks[bytes]()).add(parts)
            known = memo[same] = chunks.finish()
        yield known


async def encoded_or_refused(
    call: Call,
    path: tuple[str, ...],
    items: Iterable[T],
    line: Callable[[T], Awaitable[Any]],
    *,
    refused: Callable[[T, KafkaError], Any],
    key: Callable[[T], Hashable],
) -> EncodedArray:
    """Where a response has no place for an error of the whole: when it is too large, every item is refused."""
    try:
        return await encoded(call, path, lines(call, path, items, line, refused=refused, key=key))
    except AnswerTooLarge as error:
        too_large = error
    call.forget_made()
    return await encoded(call, path, (refused(item, too_large) async for item in paced(items, call)))


async def each(items: Iterable[T], line: Callable[[T], Awaitable[Any]], call: Call) -> AsyncIterator[Any]:
    """The lines of a response, one after the other."""
    async for item in paced(items, call):
        yield await line(item)
