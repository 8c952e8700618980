"""Requests on one connection: answers in order, however they come about; a pause holds, whoever finds it due."""

import asyncio
import gc
import struct
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import uvloop
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from ottla.api.binding import Handle
from ottla.api.call import Answer, Call, Deferred
from ottla.errors import Code, KafkaError
from support.connections import shared, talking
from support.frames import encode_request, framed

HEARTBEAT = 12
DEADLINE_S = 5.0
PAUSE_MS = 60
LOOP_MS = 2  # the precision of the loop's clock


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class OfCall:
    """What lives as long as its call, which cannot be watched itself."""

    def __call__(self) -> float:
        return 0.0


class Later(Deferred):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def begin_waiting(self) -> None:
        asyncio.get_running_loop().call_soon(self.finish)

    def make(self) -> Answer:
        return self._call.reply(error_code=Code.none)


def at_once(request: Any, call: Call) -> Answer:
    return call.reply(error_code=Code.none)


def fails_at_once(request: Any, call: Call) -> Answer:
    raise KafkaError(Code.rebalance_in_progress)


def later(request: Any, call: Call) -> Deferred:
    return Later(call)


async def in_a_task(request: Any, call: Call) -> Answer:
    await asyncio.sleep(0.001)
    return call.reply(error_code=Code.none)


async def fails_in_a_task(request: Any, call: Call) -> Answer:
    raise KafkaError(Code.rebalance_in_progress)


async def later_from_a_task(request: Any, call: Call) -> Deferred:
    return Later(call)


HANDLERS = [at_once, fails_at_once, later, in_a_task, fails_in_a_task, later_from_a_task]


def requests(count: int) -> bytes:
    asked = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")  # type: ignore[arg-type]
    return b"".join(framed(encode_request(asked, correlation_id=number)) for number in range(count))


async def answers(reader: asyncio.StreamReader, count: int) -> list[int]:
    """Their correlation ids."""
    found = []
    for _ in range(count):
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        found.append(int.from_bytes((await reader.readexactly(size))[:4], "big"))
    return found


def run(handle: Handle, test: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), talking(shared({HEARTBEAT: handle})) as (reader, writer):
            await test(reader, writer)

    uvloop.run(main())


def test_answers_in_order_whatever_takes_longer() -> None:
    begun = 0

    def mixed(request: Any, call: Call) -> Any:
        nonlocal begun
        begun += 1
        return HANDLERS[-begun % len(HANDLERS)](request, call)

    async def test(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(requests(60))
        assert await answers(reader, 60) == list(range(60))

    run(mixed, test)


@pytest.mark.parametrize("handler", HANDLERS)
def test_more_requests_at_once_than_answers_may_wait(handler: Any) -> None:
    """Nothing comes behind them that would wake the connection."""

    async def test(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(requests(250))
        assert await answers(reader, 250) == list(range(250))

    run(handler, test)


@pytest.mark.parametrize("handler", HANDLERS)
def test_whoever_is_over_a_quota_pauses(handler: Any) -> None:
    """However the answer comes about: the next request is begun when the pause is over."""
    begun_s: list[float] = []

    def throttled(request: Any, call: Call) -> Any:
        begun_s.append(asyncio.get_running_loop().time())
        call.throttle_ms = PAUSE_MS
        return handler(request, call)

    async def test(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(requests(1))
        await answers(reader, 1)
        writer.write(requests(1))
        await answers(reader, 1)
        assert begun_s[1] - begun_s[0] >= (PAUSE_MS - LOOP_MS) / 1000

    run(throttled, test)


@pytest.mark.parametrize("handler", HANDLERS)
def test_an_answered_call_needs_no_collector(no_collector: None, handler: Any) -> None:
    """At ten thousand answers a second the collector would stop the broker for tens of milliseconds."""
    calls: list[weakref.ref[OfCall]] = []

    def watched(request: Any, call: Call) -> Any:
        call.spent_s = OfCall()
        calls.append(weakref.ref(call.spent_s))
        return handler(request, call)

    async def test(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            writer.write(requests(1))
            await answers(reader, 1)
        await asyncio.sleep(0)  # the turn that sent the last answer has ended
        assert [call() for call in calls] == [None] * 3

    run(watched, test)
