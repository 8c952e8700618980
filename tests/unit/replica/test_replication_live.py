"""Replication between hosts in one process: real logs, real gRPC, real decisions of the controller."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from support.replica_hosts import HostFleet, file_bytes, until


def run(test: Callable[[HostFleet], Awaitable[None]], folder: Path, **settings: str) -> None:
    async def main() -> None:
        async with HostFleet(folder, **settings) as fleet:
            await test(fleet)

    asyncio.run(main())


def assert_equal(fleet: HostFleet, *brokers: int, topic: str = "orders", index: int = 0) -> None:
    first, *others = (file_bytes(fleet.partition(each, topic, index)) for each in brokers)
    assert first, "nothing was written"
    assert all(other == first for other in others)


def test_followers_copy_what_the_leader_has_and_acks_all_waits_for_them(tmp_path):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1, 2)
        await fleet.create("orders", (0, 1, 2))
        last = fleet.write(0, 10)
        commit = fleet.partition(0).committed(last)
        assert commit is not None, "committed before any follower could have it"
        await asyncio.wait_for(commit, 10)
        assert all(fleet.partition(each).log.end_offset == last + 1 for each in (1, 2))
        assert await fleet.same() == last + 1
        assert_equal(fleet, 0, 1, 2)
        assert fleet.state("orders").isr == (0, 1, 2)

    run(test, tmp_path)
