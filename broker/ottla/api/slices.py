"""Answers that are built and encoded in slices (see `pacing`).

An answer has a limit: `AnswerTooLarge`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Hashable, Iterable
from typing import Any, TypeVar

from ottla.api.call import Call
from ottla.api.pacing import Turn
from ottla.coordination.shard import CoordinatorShard
from ottla.errors import Code, KafkaError
from ottla.wire.chunks import Chunks
from ottla.wire.writer import EncodedArray

__all__ = [
    "AnswerTooLarge",
    "Memo",
    "each",
    "encoded",
    "encoded_or_refused",
    "grow",
    "lines",
    "paced",
    "until_committed",
]

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


async def paced(items: Iterable[T], call: Call) -> AsyncIterator[T]:
    """The turn that a long one takes is given back with `call.close`."""
    pace = call.long_work.pace
    for item in items:
        if pace.is_due:
            begins, call.is_under_way = not call.is_under_way, True
            if not begins:
                await _take_turn(call)
            await pace.rest(begins=begins)
        yield item


async def _take_turn(call: Call) -> None:
    if call.turn is None:
        call.turn = Turn(call.long_work.lock)
    if await call.turn.take():
        await call.long_work.answers.until_plenty()


async def until_committed(shard: CoordinatorShard, offset: int, call: Call) -> None:
    """Release the Turn while this request waits."""
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
        call.long_work.answers.change(uncounted)
        if call.made_bytes > (bytes_max := call.long_work.answer_bytes_max):
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
            if call.outcomes is not None:
                call.outcomes.element(path, item)
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
    """The elements of a response, one after the other."""
    async for item in paced(items, call):
        yield await line(item)
