"""The queue of looks."""

import asyncio

import pytest
from ottla_operator.plans.obstacle import Trouble
from ottla_operator.reconciling import Key, Reconciling

ONE, TWO = Key("default", "one"), Key("default", "two")


class Looks:
    """Counts looks at each key, and notices two at once."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.seen: list[Key] = []
        self.busy: set[Key] = set()
        self.moved = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key: Key) -> float | None:
        assert key not in self.busy, "two looks at the same object at once"
        self.busy.add(key)
        self.seen.append(key)
        self.moved.set()
        await self.gate.wait()
        self.busy.remove(key)
        self.moved.set()
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _run(scenario):
    async def bounded():
        async with asyncio.timeout(10):
            await scenario()

    asyncio.run(bounded())


async def _until(looks: Looks, condition) -> None:
    while not condition():
        looks.moved.clear()
        await looks.moved.wait()


def test_many_words_are_one_look():
    async def scenario():
        looks = Looks()
        queue = Reconciling("x", looks, gather_s=0.01)
        for _ in range(100):
            queue.tell(ONE)
        queue.tell(TWO)
        await _until(looks, lambda: len(looks.seen) == 2 and not looks.busy)
        await queue.stop()
        assert sorted(looks.seen) == [ONE, TWO]

    _run(scenario)


def test_a_word_during_a_look_leads_to_another():
    async def scenario():
        looks = Looks()
        looks.gate.clear()
        queue = Reconciling("x", looks, gather_s=0)
        queue.tell(ONE)
        await _until(looks, lambda: looks.busy)
        queue.tell(ONE)
        looks.gate.set()
        await _until(looks, lambda: len(looks.seen) == 2)
        await queue.stop()

    _run(scenario)


@pytest.mark.parametrize("failure", [Trouble("the API server does not answer"), ValueError("a bug")])
def test_a_look_that_fails_is_repeated_and_harms_no_other(failure):
    async def scenario():
        looks = Looks(failure, 0.0, None)
        queue = Reconciling("x", looks, gather_s=0)
        queue.tell(ONE)
        await _until(looks, lambda: len(looks.seen) == 3)
        queue.tell(TWO)
        await _until(looks, lambda: len(looks.seen) == 4)
        await queue.stop()

    _run(scenario)


def test_a_look_that_is_cancelled_from_within_does_not_end_all_looks():
    async def scenario():
        looks = Looks(asyncio.CancelledError())
        queue = Reconciling("x", looks, gather_s=0)
        queue.tell(ONE)
        await _until(looks, lambda: len(looks.seen) == 1 and not looks.busy)
        queue.tell(ONE)
        await _until(looks, lambda: len(looks.seen) == 2)
        await queue.stop()

    _run(scenario)
