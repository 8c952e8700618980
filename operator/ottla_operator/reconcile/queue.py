"""When objects are reconciled: one at a time for each key.

A handler calls `notify(key)` when something about an object has changed. The queue calls `reconcile(key)`, which
returns after how many seconds to run again even without a notification (None: not before one). A notification during a
run leads to another run. A run that fails is repeated with a growing backoff. Nothing of this is kept in the cluster: a
restarted operator gets an event for every object.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ottla_operator.plans.obstacle import TemporaryFailure

__all__ = ["Key", "ReconcileQueue"]

log = logging.getLogger("ottla.operator")

BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX = 0.5, 60.0
RECONCILE_SECONDS_MAX = 120.0


class Key(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class ReconcileQueue:
    """`gather_s`: how long to wait after the first notification, so that many of them are one run."""

    def __init__(
        self,
        what: str,
        reconcile: Callable[[Key], Awaitable[float | None]],
        *,
        runs_at_once_max: int = 8,
        gather_s: float = 0.05,
    ) -> None:
        self._what = what
        self._reconcile = reconcile
        self._gather_s = gather_s
        self._slots = asyncio.Semaphore(runs_at_once_max)
        self._notified: dict[Key, asyncio.Event] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def notify(self, key: Key) -> None:
        """Something about the object has changed, or may have."""
        self._notified.setdefault(key, asyncio.Event()).set()
        task = self._tasks.get(key)
        if task is None or task.done():  # done: something cancelled it from within
            self._tasks[key] = asyncio.create_task(self._run(key), name=f"{self._what} {key}")

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, key: Key) -> None:
        """Until the object needs nothing more."""
        notified, failures, last_problem = self._notified[key], 0, ""
        while True:
            await asyncio.sleep(self._gather_s)
            notified.clear()
            again_s, problem = await self._run_once(key)
            failures = failures + 1 if problem else 0
            if problem and problem != last_problem:
                log.warning("%s %s: %s; tried again", self._what, key, problem)
            last_problem = problem
            if problem:
                again_s = min(BACKOFF_SECONDS_MIN * 2 ** (failures - 1), BACKOFF_SECONDS_MAX)
            if not await _is_due(notified, again_s):
                del self._tasks[key], self._notified[key]
                return

    async def _run_once(self, key: Key) -> tuple[float | None, str]:
        """When to run again, and what went wrong. A bug in one run must not end those of other objects."""
        try:
            async with self._slots, asyncio.timeout(RECONCILE_SECONDS_MAX):
                return await self._reconcile(key), ""
        except TemporaryFailure as failure:
            return None, str(failure)
        except TimeoutError:
            return None, f"reconciling took more than {RECONCILE_SECONDS_MAX:g} s"
        except Exception as error:
            log.exception("%s %s: reconciling failed", self._what, key)
            return None, f"{type(error).__name__}: {error}"


async def _is_due(notified: asyncio.Event, again_s: float | None) -> bool:
    """Waits for a notification or for the time; False at once when there is neither."""
    if again_s is None:
        return notified.is_set()
    try:
        async with asyncio.timeout(again_s):
            await notified.wait()
    except TimeoutError:
        pass
    return True
