"""Waits for what a handler returns: an answer, a coroutine, or an answer that is delivered later."""

import asyncio
import inspect
from typing import Any

from ottla.api.call import Answer, Deferred

__all__ = ["settled"]


async def settled(answer: Any) -> Answer:
    if isinstance(answer, Deferred):
        done = asyncio.Event()
        answer.start(done.set)
        await done.wait()
        return answer.make()
    return await answer if inspect.isawaitable(answer) else answer
