"""Fetches that wait: when they read again, and how much of the loop that takes."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

from ottla.api.fetch_plan import PARTITIONS_READ_AT_ONCE_MAX, Plan
from ottla.api.fetch_sessions import Wanted
from ottla.api.fetching import DelayedFetch, DelayedLargeFetch
from ottla.api.pacing import Pace
from ottla.replica.partition import ROLE_CHANGED_BYTES
from ottla.storage.log.log import Located
from ottla.wire.fetch_response import Fetched

WIDE = PARTITIONS_READ_AT_ONCE_MAX + 1
NEVER_MS = 1_000_000


class Stub:
    """A partition whose records have one byte each. `on_read` is called whenever a fetch reads it."""

    def __init__(self, on_read: Callable[[], None]) -> None:
        self.log = SimpleNamespace(start_offset=0, end_offset=0)
        self.high_watermark = self.last_stable_offset = 0
        self.watchers: list[Any] = []
        self._on_read = on_read

    def require_leader(self, epoch: int) -> None:
        self._on_read()

    require_epoch = require_leader

    def watch(self, watcher: Any) -> None:
        self.watchers.append(watcher)

    def unwatch(self, watcher: Any) -> None:
        self.watchers.remove(watcher)

    def locate(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Located:
        region: Any = bytes(min(end - start, size_bytes_max))
        return Located(region, ())

    def append(self, count: int = 1, *, stable: bool = True) -> None:
        self.high_watermark += count
        self.log.end_offset = self.high_watermark
        if stable:
            self.last_stable_offset = self.high_watermark
        for watcher in list(self.watchers):
            watcher.moved(self, count)


class Host:
    def __init__(self, count: int) -> None:
        self.reads = 0
        self.partitions = [Stub(self._read) for _ in range(count)]

    def _read(self) -> None:
        self.reads += 1

    def find(self, topic: str, index: int) -> Any:
        return self.partitions[index]

    require = find

    def plan(self, pace: Pace | None = None) -> Plan:
        wanted = [
            Wanted(topic="t", index=at, offset=0, size_bytes_max=1000, leader_epoch=-1, last_fetched_epoch=-1)
            for at in range(len(self.partitions))
        ]
        replicas: Any = self
        plan = Plan(
            wanted=wanted,
            size_bytes_max=1 << 20,
            read_committed=True,
            replicas=replicas,
            pace=pace or Pace(),
            from_leader_only=True,
        )
        plan.read()
        self.reads = 0
        return plan


def sizes(reading: Any) -> Any:
    found: list[Fetched] = [fetched for _, fetched in reading.answers]
    return [len(fetched.records) for fetched in found if len(fetched.records)]


def delayed(plan: Plan, *, size_bytes_min: int = 100, wait_ms: int = NEVER_MS) -> DelayedFetch:
    fetch = DelayedFetch(plan, sizes, size_bytes_min=size_bytes_min, wait_ms=wait_ms)
    fetch.start(lambda: None)
    return fetch


def made(fetch: DelayedFetch | DelayedLargeFetch) -> Any:
    return fetch.make()


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 5)

    asyncio.run(bounded())


def test_behind_an_open_transaction_nothing_is_read_again() -> None:
    async def test() -> None:
        host = Host(2)
        host.partitions[0].append(5, stable=False)
        fetch = delayed(host.plan())
        for _ in range(50):
            host.partitions[0].append(10, stable=False)
            host.partitions[1].append(1)
            await turns(2)
        assert host.reads == 0, "too few bytes are readable, whatever lies behind the transaction"
        host.partitions[0].append(1)
        await turns()
        assert fetch.is_over and made(fetch) == [506, 50]
        assert host.reads == 2

    run(test)


def test_a_transaction_that_begins_while_one_waits() -> None:
    async def test() -> None:
        host = Host(1)
        fetch = delayed(host.plan(), size_bytes_min=1)
        host.partitions[0].append(5, stable=False)
        await turns()
        assert not fetch.is_over and host.reads == 1
        host.partitions[0].append(5, stable=False)
        await turns()
        assert host.reads == 1
        host.partitions[0].append(1)
        await turns()
        assert made(fetch) == [11]

    run(test)


def test_a_changed_role_is_seen_behind_an_open_transaction() -> None:
    async def test() -> None:
        host = Host(1)
        host.partitions[0].append(5, stable=False)
        fetch = delayed(host.plan())
        fetch.moved(host.partitions[0], ROLE_CHANGED_BYTES)  # type: ignore[arg-type]
        await turns()
        assert host.reads == 1

    run(test)


def test_many_wide_fetches_share_the_loop() -> None:
    """One append is enough for all of them: each turn of the loop reads only as much as a slice."""

    async def test() -> None:
        now = 0.0
        host = Host(WIDE)

        def read() -> None:
            nonlocal now
            host.reads += 1
            now += 0.001

        for partition in host.partitions:
            partition._on_read = read
        pace = Pace(lambda: now)
        fetches = [delayed(host.plan(pace), size_bytes_min=1) for _ in range(10)]
        host.partitions[3].append(1)
        most, before = 0, host.reads
        while not all(fetch.is_over for fetch in fetches):
            await asyncio.sleep(0)
            most, before = max(most, host.reads - before), host.reads
        assert most <= 4, "of 510"
        assert [made(fetch) for fetch in fetches] == [[1]] * 10
        assert not host.partitions[0].watchers

    run(test)


def test_what_comes_during_a_sliced_reading_counts() -> None:
    async def test() -> None:
        host = Host(WIDE)
        fetch = delayed(host.plan(), size_bytes_min=10)
        first = host.partitions[0]

        def append_behind() -> None:
            host.partitions[-1]._on_read = lambda: None
            first.append(4)

        host.partitions[-1]._on_read = append_behind  # the first has been read by then
        host.partitions[1].append(10, stable=False)
        await turns()
        assert not fetch.is_over
        host.partitions[2].append(6)
        await turns()
        assert fetch.is_over and made(fetch) == [4, 6]

    run(test)


def test_the_time_of_a_wide_fetch_is_up() -> None:
    async def test() -> None:
        host = Host(WIDE)
        fetch = delayed(host.plan(), wait_ms=10)
        host.partitions[5].append(3)
        await asyncio.sleep(0.05)
        assert fetch.is_over and made(fetch) == [3]

    run(test)


def test_a_client_that_goes_while_a_wide_fetch_reads() -> None:
    async def test() -> None:
        host = Host(WIDE)
        fetch = delayed(host.plan(Pace(lambda: 0.0)), size_bytes_min=1)
        host.partitions[0].append(1)
        await asyncio.sleep(0)
        fetch.cancel()
        await turns()
        assert not host.partitions[0].watchers

    run(test)


def test_a_large_fetch_reads_when_it_is_worth_it() -> None:
    async def test() -> None:
        host = Host(3)
        host.partitions[0].append(5, stable=False)
        plan = host.plan()

        async def answer(reading: Any) -> Any:
            return sizes(reading)

        fetch = DelayedLargeFetch(plan, plan.read(), answer, lock=asyncio.Lock(), size_bytes_min=10, wait_ms=NEVER_MS)
        fetch.start(lambda: None)
        await turns()
        host.reads = 0
        for _ in range(20):
            host.partitions[0].append(10, stable=False)
            await turns(3)
        assert host.reads == 0
        host.partitions[1].append(9)
        await turns()
        assert host.reads == 0
        host.partitions[2].append(1)
        await turns()
        assert fetch.is_over and made(fetch) == [9, 1]

    run(test)
