"""Slices: one in each turn of the loop, whoever works; memory of answers before large ones."""

import asyncio
import time

from ottla.api.pacing import SLICE_SECONDS, Pace
from ottla.net.memory import AnswerMemory


def spend_slice() -> None:
    until = time.perf_counter() + SLICE_SECONDS
    while time.perf_counter() < until:
        pass


def test_all_share_the_slice_of_a_turn():
    """What the first has used up, the second does not get in the same turn of the loop."""

    async def run() -> None:
        pace = Pace()
        assert not pace.is_due
        spend_slice()
        assert pace.is_due
        await pace.rest()
        assert not pace.is_due

    asyncio.run(run())


def test_one_that_begins_goes_before_those_that_had_a_slice():
    async def run() -> list[str]:
        pace, order = Pace(), []

        async def wait(name: str, *, begins: bool) -> None:
            await pace.rest(begins=begins)
            order.append(name)

        await asyncio.gather(wait("long", begins=False), wait("short", begins=True))
        return order

    assert asyncio.run(run()) == ["short", "long"]


def test_a_rest_ends_though_nobody_has_worked_in_this_turn():
    """One that waited for its turn, and then rests, was never woken."""

    async def run() -> None:
        pace = Pace()
        assert not pace.is_due
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.wait_for(pace.rest(), 5)

    asyncio.run(run())


def test_a_large_answer_waits_until_others_are_taken():
    async def run() -> bool:
        memory = AnswerMemory(100, time.monotonic)
        memory.change(90)
        waiting = asyncio.ensure_future(memory.until_plenty())
        await asyncio.sleep(0)
        assert not waiting.done()
        memory.change(-60)
        await asyncio.wait_for(waiting, 5)
        return memory.is_scarce

    assert not asyncio.run(run())


def test_on_virtual_time_no_slice_ends():
    """A simulated history must not depend on how fast the machine is."""

    async def scene() -> None:
        pace = Pace(lambda: 5.0)
        assert not pace.is_due
        spend_slice()
        assert not pace.is_due

    asyncio.run(scene())
