"""What is not decoded on the loop: large requests, and the codecs of the first request of a kind.

Large requests of all connections are worked off one at a time: decoded in a thread, handled in slices.
"""

import asyncio

from ottla.api.binding import Handle
from ottla.api.call import Answer, Call, Deferred
from ottla.api.pacing import LongWork, Turn
from ottla.api.registry import Api
from ottla.system import Threads

__all__ = ["LargeRequests"]

PRODUCE = 0


class LargeRequests:
    def __init__(self, threads: Threads, long_work: LongWork, *, elements_max: int) -> None:
        self._threads = threads
        self._long_work = long_work
        self._elements_max = elements_max
        self._codecs = asyncio.Lock()
        self._long_appends = asyncio.Lock()  # held by the one that produces very many batches at once
        self._long_commands = asyncio.Lock()  # held by the one whose request waits for the controller

    async def prepare(self, api: Api, version: int) -> None:
        """Make the codecs of a version, which takes milliseconds: whoever needs them waits, not everybody."""
        async with self._codecs:
            if not api.is_prepared(version):
                await self._threads.run(api.prepare, version)

    async def answer(self, call: Call, frame: memoryview, position: int, handle: Handle) -> Answer | Deferred:
        """`position` is where the request begins in its frame."""
        call.is_large = True
        call.turn = Turn(self._lock_for(call.api))
        async with call.turn:
            await self._long_work.answers.until_plenty()
            read = call.api.large_reader(call.version, elements_max=self._elements_max)
            request, _ = await self._threads.run(read, frame, position)
            result = handle(request, call)
            return result if isinstance(result, list | Deferred | None) else await result

    def _lock_for(self, api: Api) -> asyncio.Lock:
        if api.key == PRODUCE:
            return self._long_appends
        return self._long_work.lock if api.works_in_slices else self._long_commands
