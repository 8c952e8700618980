"""The way between the two loops of a node, on two real loops in two threads."""

import asyncio
import contextlib
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
from ottla import handover as handover_module
from ottla.errors import Code, KafkaError
from ottla.handover import Handover, LoopLane
from ottla.system import RealClock

PATIENCE_S = 10.0


@contextmanager
def other_loop() -> Iterator[LoopLane]:
    """A loop in a thread of its own."""
    ready = threading.Event()
    made: list[LoopLane] = []
    ends: list[asyncio.Event] = []

    async def turn() -> None:
        made.append(LoopLane())
        ends.append(asyncio.Event())
        ready.set()
        await ends[0].wait()

    thread = threading.Thread(target=lambda: asyncio.run(turn()))
    thread.start()
    ready.wait(PATIENCE_S)
    try:
        yield made[0]
    finally:
        made[0].post(ends[0].set)
        thread.join(PATIENCE_S)


def on_two_loops(scene: Callable[[Handover], Awaitable[None]]) -> None:
    """The scene runs on the control loop."""

    async def whole(data: LoopLane) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await scene(Handover(control=LoopLane(), data=data, clock=RealClock()))

    with other_loop() as data:
        asyncio.run(whole(data), debug=True)  # in debug mode asyncio refuses what is scheduled from another thread


def test_a_call_runs_on_the_other_loop_and_answers_on_this_one():
    async def scene(handover: Handover) -> None:
        async def there() -> int:
            assert handover.data.is_here() and not handover.control.is_here()
            await asyncio.sleep(0)
            return await handover.on_control(back)

        async def back() -> int:
            assert handover.control.is_here() and not handover.data.is_here()
            return 7

        assert await handover.on_data(there) == 7
        assert handover.control.is_here()

    on_two_loops(scene)


def test_what_is_raised_there_is_raised_here():
    async def scene(handover: Handover) -> None:
        async def there() -> None:
            raise KafkaError(Code.not_controller, "elsewhere")

        with pytest.raises(KafkaError, match="elsewhere"):
            await handover.on_data(there)

    on_two_loops(scene)


def test_a_caller_that_is_cancelled_cancels_the_work():
    async def scene(handover: Handover) -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def there() -> None:
            handover.control.post(begun.set)
            try:
                await asyncio.sleep(PATIENCE_S)
            finally:
                handover.control.post(ended.set)

        call = asyncio.ensure_future(handover.on_data(there))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await ended.wait()

    on_two_loops(scene)


class Kept:
    """What the work of a call holds, as a decision holds the image of the fleet."""


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["refused", "cancelled"])
def test_a_call_that_fails_needs_no_collector(is_cancelled: bool) -> None:
    """Clients that hang up left as many cycles as calls, and the collector took 50 to 90 ms for 50,000 objects."""

    async def scene(handover: Handover) -> None:
        begun = asyncio.Event()
        kept: list[weakref.ref[Kept]] = []

        async def there() -> None:
            held = Kept()
            kept.append(weakref.ref(held))
            handover.control.post(begun.set)
            if not is_cancelled:
                raise KafkaError(Code.invalid_request, "no")
            await asyncio.sleep(PATIENCE_S)

        async def asked() -> None:
            with contextlib.suppress(KafkaError):
                await handover.on_data(there)

        call = asyncio.ensure_future(asked())
        await begun.wait()
        if is_cancelled:
            call.cancel()
        await asyncio.wait([call])
        del call
        while kept[0]() is not None:  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0.001)

    gc.collect()
    gc.disable()
    try:
        on_two_loops(scene)
    finally:
        gc.enable()


def test_an_answer_comes_after_everything_that_was_posted_before_it():
    async def scene(handover: Handover) -> None:
        heard: list[int] = []

        async def there() -> int:
            for number in range(100):
                handover.control.post(heard.append, number)
            return len(heard)

        await handover.on_data(there)
        assert heard == list(range(100))

    on_two_loops(scene)


def test_a_call_from_the_wrong_loop_is_a_bug_that_shows():
    async def scene(handover: Handover) -> None:
        async def nothing() -> None:
            pass

        with pytest.raises(AssertionError, match="wrong loop"):
            await handover.on_control(nothing)

    on_two_loops(scene)


def test_calls_that_are_not_answered_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handover_module, "CALLS_MAX", 2)

    async def scene(handover: Handover) -> None:
        async def long() -> None:
            await asyncio.sleep(PATIENCE_S)

        waiting = [asyncio.ensure_future(handover.on_data(long)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(KafkaError) as refused:
            await handover.on_data(long)
        assert refused.value.code is Code.request_timed_out
        for call in waiting:
            call.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    on_two_loops(scene)


def test_the_pulse_stops_while_the_data_loop_is_held():
    async def scene(handover: Handover) -> None:
        release = threading.Event()
        handover.data.post(handover.pulse.start)
        handover.data.post(release.wait, PATIENCE_S)
        while handover.pulse.age_s() < 2 * handover_module.PULSE_SECONDS:  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0.01)
        release.set()
        while handover.pulse.age_s() > handover_module.PULSE_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        handover.data.post(handover.pulse.stop)

    on_two_loops(scene)
