"""When objects are reconciled."""

import asyncio

import pytest
from ottla_operator.plans.obstacle import TemporaryFailure
from ottla_operator.reconcile.queue import Key, ReconcileQueue

ONE, TWO = Key("default", "one"), Key("default", "two")


class Runs:
    """Counts the runs for each key, and notices two at once."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.seen: list[Key] = []
        self.busy: set[Key] = set()
        self.moved = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key: Key) -> float | None:
        assert key not in self.busy, "two runs for the same object at once"
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


async def _until(runs: Runs, condition) -> None:
    while not condition():
        runs.moved.clear()
        await runs.moved.wait()


def test_many_notifications_are_one_run():
    async def scenario():
        runs = Runs()
        queue = ReconcileQueue("x", runs, gather_s=0.01)
        for _ in range(100):
            queue.notify(ONE)
        queue.notify(TWO)
        await _until(runs, lambda: len(runs.seen) == 2 and not runs.busy)
        await queue.stop()
        assert sorted(runs.seen) == [ONE, TWO]

    _run(scenario)


def test_a_notification_during_a_run_leads_to_another():
    async def scenario():
        runs = Runs()
        runs.gate.clear()
        queue = ReconcileQueue("x", runs, gather_s=0)
        queue.notify(ONE)
        await _until(runs, lambda: runs.busy)
        queue.notify(ONE)
        runs.gate.set()
        await _until(runs, lambda: len(runs.seen) == 2)
        await queue.stop()

    _run(scenario)


@pytest.mark.parametrize("failure", [TemporaryFailure("the API server does not answer"), ValueError("a bug")])
def test_a_run_that_fails_is_repeated_and_harms_no_other(failure):
    async def scenario():
        runs = Runs(failure, 0.0, None)
        queue = ReconcileQueue("x", runs, gather_s=0)
        queue.notify(ONE)
        await _until(runs, lambda: len(runs.seen) == 3)
        queue.notify(TWO)
        await _until(runs, lambda: len(runs.seen) == 4)
        await queue.stop()

    _run(scenario)


def test_a_run_that_is_cancelled_from_within_does_not_end_all_runs():
    async def scenario():
        runs = Runs(asyncio.CancelledError())
        queue = ReconcileQueue("x", runs, gather_s=0)
        queue.notify(ONE)
        await _until(runs, lambda: len(runs.seen) == 1 and not runs.busy)
        queue.notify(ONE)
        await _until(runs, lambda: len(runs.seen) == 2)
        await queue.stop()

    _run(scenario)
