"""Deadlines of many automata on one timer: each is met, whatever the others do."""

import asyncio
import logging

import pytest
from ottla.coordination.deadlines import DUE_PER_TURN_MAX, Deadlines
from ottla.system import RealClock


def test_a_group_that_fails_does_so_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[str]:
        rung: list[str] = []
        all_rung = asyncio.Event()

        def ring(group_id: str) -> None:
            rung.append(group_id)
            if group_id == "bad":
                raise ValueError("cannot be written")
            if group_id == "later":
                all_rung.set()

        clock = RealClock()
        deadlines = Deadlines(clock, ring)
        for number, group_id in enumerate(("bad", "same-turn", "later")):
            deadlines.wake(group_id, clock.monotonic() + (0.05 if number == 2 else 0.0))
        await asyncio.wait_for(all_rung.wait(), 10)
        return rung

    with caplog.at_level(logging.ERROR, "ottla.coordination"):
        assert asyncio.run(run()) == ["bad", "same-turn", "later"]
    assert "bad" in caplog.text and "cannot be written" in caplog.text


def test_very_many_at_once_leave_turns_to_others() -> None:
    async def run() -> list[int]:
        rung = 0
        seen: list[int] = []

        def ring(_: str) -> None:
            nonlocal rung
            rung += 1

        clock = RealClock()
        deadlines = Deadlines(clock, ring)
        at = clock.monotonic()
        for number in range(3 * DUE_PER_TURN_MAX):
            deadlines.wake(f"g{number}", at)
        while rung < 3 * DUE_PER_TURN_MAX:
            await asyncio.sleep(0)
            seen.append(rung)
        return seen

    seen = asyncio.run(asyncio.wait_for(run(), 10))
    assert max(b - a for a, b in zip([0, *seen], seen, strict=False)) <= DUE_PER_TURN_MAX
