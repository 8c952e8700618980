"""Lookups by time take one thread, whoever asks for how many."""

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

from ottla.api.k02_list_offsets import _search
from ottla.api.lookups import Lookups


class Threads:
    """Work that ends when it is told to."""

    def __init__(self) -> None:
        self.running: list[asyncio.Future[Any]] = []
        self.begun: list[str] = []

    def run(self, work: Any, *arguments: object) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.running.append(future)
        self.begun.append(work())
        return future

    async def end(self) -> None:
        self.running.pop().set_result(SimpleNamespace(offset=0))
        for _ in range(10):
            await asyncio.sleep(0)


def test_one_at_a_time_and_by_turns() -> None:
    async def test() -> None:
        threads = Threads()
        lookups = Lookups(threads)

        def begin(name: str, own: asyncio.Lock) -> "asyncio.Task[Any]":
            log = SimpleNamespace(max_timestamp=lambda: name)
            partition: Any = SimpleNamespace(log=log, high_watermark=1, last_stable_offset=1, view=None)
            request: Any = SimpleNamespace(replica_id=-1, isolation_level=0)
            return asyncio.ensure_future(_search(partition, -3, request, partial(lookups.run, own)))

        greedy, modest = asyncio.Lock(), asyncio.Lock()
        tasks = [begin(f"greedy {number}", greedy) for number in range(4)] + [begin("modest", modest)]
        await asyncio.sleep(0.01)
        assert threads.begun == ["greedy 0"]
        tasks[0].cancel()
        tasks[2].cancel()
        await asyncio.sleep(0.01)
        assert threads.begun == ["greedy 0"], "its client has gone; the thread is still taken"
        await threads.end()
        assert threads.begun == ["greedy 0", "modest"]
        while threads.running:
            await threads.end()
        assert threads.begun == ["greedy 0", "modest", "greedy 1", "greedy 3"]

    asyncio.run(asyncio.wait_for(test(), 5))
