"""Periodic work over very many partitions: others are served in between, and what is removed meanwhile is left out."""

import asyncio
from pathlib import Path

import pytest
from ottla.replica import host as replica_host
from support.replica_hosts import HostFleet, run

PARTITIONS = 20


async def turns_of(work: asyncio.Task[object]) -> int:
    turns = 0
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    return turns


def test_partitions_are_visited_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_host, "VISITED_AT_ONCE", 4)

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0)
        await fleet.create("orders", *[(0,)] * PARTITIONS)
        host = fleet.brokers[0].host
        collecting = asyncio.ensure_future(host.collect_high_watermarks())
        assert await turns_of(collecting) >= 2 * PARTITIONS / 4
        assert collecting.result() == host.high_watermarks() and len(collecting.result()) == PARTITIONS

    run(test, tmp_path)


@pytest.mark.parametrize("turns", range(0, 12, 3))
def test_what_is_removed_meanwhile_has_no_high_watermark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """A new topic of the same name would begin with it."""
    monkeypatch.setattr(replica_host, "VISITED_AT_ONCE", 4)

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0)
        await fleet.create("orders", *[(0,)] * PARTITIONS)
        fleet.write(0)
        host = fleet.brokers[0].host
        assert host.high_watermarks()["orders", 0] > 0
        collecting = asyncio.ensure_future(host.collect_high_watermarks())
        for _ in range(turns):
            await asyncio.sleep(0)
        for partition in list(host):
            host._stop(partition)
        assert await collecting == {}

    run(test, tmp_path)
