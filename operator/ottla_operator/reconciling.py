"""Looking after objects, one look at a time for each.

A handler tells the queue that something about an object has changed; the queue calls `look(key)`, which observes,
decides, acts, and returns after how many seconds to look again even if nothing is told (None: not before). What is told
during a look leads to another one. A look that fails is repeated, later each time. Nothing is kept in the cluster for
this: a restarted operator is told of every object anew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ottla_operator.plans.obstacle import Trouble

__all__ = ["Key", "Reconciling"]

log = logging.getLogger("ottla.operator")

BACKOFF_SECONDS_MIN, BACKOFF_SECONDS_MAX = 0.5, 60.0
LOOK_SECONDS_MAX = 120.0


class Key(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Reconciling:
    """`gather_s`: how long to wait after the first word, so that many of them are one look."""

    def __init__(
        self,
        what: str,
        look: Callable[[Key], Awaitable[float | None]],
        *,
        looks_at_once_max: int = 8,
        gather_s: float = 0.05,
    ) -> None:
        self._what = what
        self._look = look
        self._gather_s = gather_s
        self._slots = asyncio.Semaphore(looks_at_once_max)
        self._told: dict[Key, asyncio.Event] = {}
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def tell(self, key: Key) -> None:
        """Something about it has changed, or may have."""
        self._told.setdefault(key, asyncio.Event()).set()
        task = self._tasks.get(key)
        if task is None or task.done():  # done: something cancelled it from within
            self._tasks[key] = asyncio.create_task(self._attend(key), name=f"{self._what} {key}")

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _attend(self, key: Key) -> None:
        """Until nothing more is to be done about it."""
        told, failures, trouble = self._told[key], 0, ""
        while True:
            await asyncio.sleep(self._gather_s)
            told.clear()
            again_s, problem = await self._look_once(key)
            failures = failures + 1 if problem else 0
            if problem and problem != trouble:
                log.warning("%s %s: %s; tried again", self._what, key, problem)
            trouble = problem
            if problem:
                again_s = min(BACKOFF_SECONDS_MIN * 2 ** (failures - 1), BACKOFF_SECONDS_MAX)
            if not await _happens(told, again_s):
                del self._tasks[key], self._told[key]
                return

    async def _look_once(self, key: Key) -> tuple[float | None, str]:
        """When to look again, and what went wrong. A bug in one look must not end those of other objects."""
        try:
            async with self._slots, asyncio.timeout(LOOK_SECONDS_MAX):
                return await self._look(key), ""
        except Trouble as trouble:
            return None, str(trouble)
        except TimeoutError:
            return None, f"a look took more than {LOOK_SECONDS_MAX:g} s"
        except Exception as error:
            log.exception("%s %s: a look failed", self._what, key)
            return None, f"{type(error).__name__}: {error}"


async def _happens(told: asyncio.Event, again_s: float | None) -> bool:
    """True when there is to be another look; waits for the word or the time. False: nobody needs one."""
    if again_s is None:
        return told.is_set()
    try:
        async with asyncio.timeout(again_s):
            await told.wait()
    except TimeoutError:
        pass
    return True
