"""What a handler returns, waited for: some answer at once, some in a coroutine, some when something happens."""

import asyncio
import inspect
from typing import Any

from ottla.api.call import Answer, Deferred

__all__ = ["settled"]


async def settled(answer: Any) -> Answer:
    if isinstance(answer, Deferred):
        done = asyncio.Event()
        answer.deliver_to(done.set)
        await done.wait()
        return answer.make()
    return await answer if inspect.isawaitable(answer) else answer
