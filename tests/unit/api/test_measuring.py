"""The time of handlers is measured while they run, not while they wait."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from ottla.api.measuring import measured


class HandClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s


def call() -> Any:
    return SimpleNamespace(spent_s=None)


def test_a_handler_that_answers_at_once() -> None:
    clock = HandClock()

    def handler(request: Any, call: Any) -> list[bytes]:
        clock.now_s += 3
        assert call.spent_s() == 3
        return [b"answer"]

    assert measured(handler, None, call(), clock) == [b"answer"]


def test_waiting_is_not_counted() -> None:
    clock = HandClock()

    async def handler(request: Any, call: Any) -> list[bytes]:
        clock.now_s += 1
        await wait(clock, 100)
        clock.now_s += 2
        assert call.spent_s() == 3
        clock.now_s += 4
        assert call.spent_s() == 4, "what was taken is not counted again"
        return [b"answer"]

    async def wait(clock: HandClock, seconds: float) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def later() -> None:
            clock.now_s += seconds
            turn.set_result(None)

        asyncio.get_running_loop().call_soon(later)
        await turn

    async def run() -> Any:
        result: Any = measured(handler, None, call(), clock)
        return await result

    assert asyncio.run(run()) == [b"answer"]


def test_an_answer_made_by_somebody_else_costs_what_the_handler_took() -> None:
    """A fetch that waits is answered by whoever appends."""
    clock = HandClock()
    spent: list[float] = []

    async def run() -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def handler(request: Any, call: Any) -> Any:
            clock.now_s += 2
            return answer

        asked = call()
        result: Any = measured(handler, None, asked, clock)
        waiting = asyncio.ensure_future(result)
        await asyncio.sleep(0)
        clock.now_s += 100
        spent.append(asked.spent_s())
        answer.set_result([b"answer"])
        return await waiting

    assert asyncio.run(run()) == [b"answer"]
    assert spent == [2]


def test_failures_and_cancellation_reach_the_handler() -> None:
    clock = HandClock()
    heard: list[str] = []

    async def handler(request: Any, call: Any) -> list[bytes]:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise
        return []

    async def failing(request: Any, call: Any) -> list[bytes]:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def run() -> None:
        result: Any = measured(handler, None, call(), clock)
        task = asyncio.ensure_future(result)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        failed: Any = measured(failing, None, call(), clock)
        with pytest.raises(ValueError, match="no"):
            await failed

    asyncio.run(run())
    assert heard == ["cancelled"]
