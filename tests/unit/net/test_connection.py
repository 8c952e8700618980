"""Requests on one connection: answers in order, however they come about; a pause holds, whoever finds it due."""

import asyncio
import gc
import struct
import uuid
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
import uvloop
from kio.schema.delete_topics.v3.request import DeleteTopicsRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from ottla.api.binding import Handle
from ottla.api.call import Answer, Call, Deferred
from ottla.api.change_trail import recorded
from ottla.errors import Code, KafkaError
from ottla.security.core.audit import AuditEvent
from support.connections import shared, talking
from support.frames import encode_request, framed

HEARTBEAT, DELETE_TOPICS = 12, 20
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


def test_one_that_cannot_say_that_it_failed_is_closed() -> None:
    """The answer itself cannot be made: nobody waits for it for ever."""

    async def fails(request: Any, call: Call) -> Answer:
        call.allowance = cast(Any, Unmeasurable())
        raise KafkaError(Code.rebalance_in_progress)

    async def test(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(requests(1))
        assert await reader.read() == b""

    run(fails, test)


class Unmeasurable:
    @property
    def request(self) -> None:
        raise OverflowError


def test_one_that_cannot_begin_is_closed() -> None:
    common = shared()
    left: list[str] = []

    def cannot(*_: object) -> int:
        raise OverflowError

    common.admission.leave = lambda host, listener: left.append(listener)  # type: ignore[method-assign]
    common.allowances.connection_pause_ms = cannot  # type: ignore[method-assign]

    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S), talking(common) as (reader, _):
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            assert left == ["PLAINTEXT"]

    uvloop.run(main())


class Trail(list[AuditEvent]):
    def record(self, event: AuditEvent) -> None:
        self.append(event)


def told_after_hanging_up(deletes: Handle) -> list[tuple[str, str, str]]:
    """The lines about a deletion whose client does not wait for the answer; its handler ends after the connection."""
    trail = Trail()

    async def main() -> None:
        begun, gone = asyncio.Event(), asyncio.Event()

        async def handle(request: Any, call: Call) -> Answer:
            assert call.on_close is not None
            call.on_close["test"] = gone.set
            begun.set()
            await gone.wait()
            return cast(Answer, await deletes(request, call))

        common = replace(shared({DELETE_TOPICS: recorded(DELETE_TOPICS, handle)}), trail=trail)
        async with asyncio.timeout(DEADLINE_S), talking(common) as (_, writer):
            asked = DeleteTopicsRequest(topic_names=("orders",), timeout=timedelta(seconds=1))  # type: ignore[arg-type]
            writer.write(framed(encode_request(asked)))
            await begun.wait()
            writer.close()
            while not trail:  # noqa: ASYNC110 (what is waited for has no event)
                await asyncio.sleep(0.01)

    uvloop.run(main())
    return [(event.resource, event.verdict, event.reason) for event in trail]


@pytest.mark.parametrize(
    ("code", "verdict", "reason"),
    [(Code.none, "allowed", ""), (Code.invalid_request, "failed", "invalid_request")],
)
def test_what_became_of_a_change_is_known_although_its_client_hung_up(code: Code, verdict: str, reason: str) -> None:
    async def deletes(request: Any, call: Call) -> Answer:
        await asyncio.sleep(0)
        topic = {"name": "orders", "topic_id": uuid.UUID(int=0), "error_code": code, "error_message": None}
        return call.reply(responses=[topic])

    assert told_after_hanging_up(deletes) == [("Topic:orders", verdict, reason)]


def test_a_change_that_takes_very_long_is_given_up_after_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.net.handling.CHANGE_SECONDS_MAX", 0.01)

    async def never(request: Any, call: Call) -> Answer:
        await asyncio.Event().wait()
        return None

    assert told_after_hanging_up(never) == [("Topic:orders", "unknown", "its connection ended before the answer")]
