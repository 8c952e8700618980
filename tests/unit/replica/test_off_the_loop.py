"""What cuts or deletes the files of segments waits for the disk in a thread; the role may change meanwhile."""

import asyncio
import threading
from pathlib import Path

import pytest
from ottla.ports import Buffer
from ottla.storage.core import names
from ottla.storage.core.settings import LogSettings
from ottla.storage.log import truncation
from ottla.storage.log.log import Log
from ottla.wire.batch import iterate
from support.loop_calls import LoopCalls
from support.replica_hosts import HostFleet, assert_equal, leave_alone, run, until

UNCOMMITTED = 400


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> LoopCalls:
    return LoopCalls(monkeypatch)


async def diverged(fleet: HostFleet, partitions: int = 1) -> None:
    """Broker 0 led and wrote, in several segments, what broker 1, which leads now, does not have."""
    await fleet.join(0, 1)
    await fleet.create("orders", *[(0, 1)] * partitions)
    for index in range(partitions):
        fleet.partition(0, index=index).log.configure(LogSettings(segment_bytes=20_000))
        fleet.write(0, 50, index=index)
        await fleet.same(index=index)
    leave_alone(fleet, 0)
    for index in range(partitions):
        fleet.partition(0, index=index)._copies.clear()
        fleet.write(0, UNCOMMITTED, index=index)
        assert len(fleet.partition(0, index=index).log.segments) > 2


def test_a_copy_is_cut_in_a_thread(tmp_path, calls):
    async def test(fleet: HostFleet) -> None:
        await diverged(fleet)
        end = fleet.partition(1).log.end_offset
        calls.begin()
        await fleet.elect("orders", 0, leader=1)
        await until(lambda: fleet.partition(0).log.end_offset == end, "the copy is cut")
        await until(lambda: not fleet.partition(0).log.changing.locked(), "its files are")
        calls.end()
        assert calls.elsewhere["ftruncate"] >= 1 and calls.elsewhere["replace"] >= 2 and calls.elsewhere["pread"] >= 1
        assert calls.on_loop == {}
        fleet.write(1, 3)
        await fleet.same()
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)


class HeldPlans:
    """Plans wait in their threads until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = 0, threading.Event()
        plan = Log.plan_truncation

        def held(log, offset):  # type: ignore[no-untyped-def]
            found = plan(log, offset)
            self.begun += 1
            assert self.go.wait(20)
            return found

        monkeypatch.setattr(Log, "plan_truncation", held)


def test_a_cut_that_a_newer_epoch_overtakes_is_given_up(tmp_path, monkeypatch):
    """The broker leads again while the plan is made: what it then appends, and what was to be cut, stays."""
    plans = HeldPlans(monkeypatch)

    async def test(fleet: HostFleet) -> None:
        await diverged(fleet)
        await fleet.elect("orders", 0, leader=1)
        await until(lambda: plans.begun == 1, "a plan is being made")
        end = fleet.partition(0).log.end_offset
        await asyncio.wait_for(fleet.elect("orders", 0, leader=0), 5)  # nobody waits for the plan
        last = fleet.write(0, 2)
        assert last > end
        plans.go.set()
        assert await fleet.same() == last + 1
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)


def test_a_role_changes_only_when_the_files_of_a_cut_are_done(tmp_path, monkeypatch):
    """A leader that appended earlier would write beyond the old end, or lose its records to the cut."""
    settling, go = threading.Event(), threading.Event()
    truncate_files = truncation.truncate_files

    def held(files):  # type: ignore[no-untyped-def]
        settling.set()
        assert go.wait(20)
        truncate_files(files)

    monkeypatch.setattr(truncation, "truncate_files", held)

    async def test(fleet: HostFleet) -> None:
        await diverged(fleet)
        await fleet.elect("orders", 0, leader=1)
        await until(settling.is_set, "the files are being cut")
        electing = asyncio.ensure_future(fleet.elect("orders", 0, leader=0))
        await until(lambda: fleet.state("orders").leader == 0)
        assert not fleet.partition(0).is_leader
        go.set()
        await electing
        fleet.write(0, 2)
        await fleet.same()
        assert_equal(fleet, 0, 1)

    run(test, tmp_path)


def test_several_copies_are_planned_at_once_and_no_more_than_the_limit(tmp_path, monkeypatch):
    plans = HeldPlans(monkeypatch)

    async def test(fleet: HostFleet) -> None:
        await diverged(fleet, partitions=6)
        for index in range(6):
            await fleet.elect("orders", index, leader=1)
        await until(lambda: plans.begun == 4, "four plans are made at once")
        await asyncio.sleep(0.05)
        assert plans.begun == 4
        plans.go.set()
        for index in range(6):
            fleet.write(1, index=index)
            await fleet.same(index=index)
            assert_equal(fleet, 0, 1, index=index)

    run(test, tmp_path)


def test_segments_are_deleted_in_a_thread(tmp_path, calls):
    async def test(fleet: HostFleet) -> None:
        await fleet.join(0)
        await fleet.create("orders", (0,))
        partition = fleet.partition(0)
        log = partition.log
        log.configure(LogSettings(segment_bytes=10_000, retention_bytes=20_000, file_delete_delay_ms=0))
        fleet.write(0, 500)
        log.flush()
        count = len(log.segments)
        calls.begin()
        partition.delete_before(log.segments[2].base_offset + 1)
        await until(lambda: len(log.segments) == count - 2 and not log.changing.locked(), "two segments are gone")
        now_ms = log.clock.wall_ms()
        assert await partition.delete_expired(now_ms, log.end_offset, is_wanted=lambda: True) > 0
        await partition.purge(log.clock.wall_ms() + 1)
        calls.end()
        assert calls.elsewhere["replace"] >= 2 and calls.elsewhere["remove"] >= 2
        assert calls.on_loop == {}
        assert log.take_due_removals(2**63) == []

    run(test, tmp_path)


def write_cleaned(log: Log, data: Buffer) -> None:
    Path(f"{log.segments[0].path(names.LOG)}{names.CLEANED}").write_bytes(data)


def test_a_copy_that_is_cut_in_a_gap_of_its_compaction_comes_back(tmp_path):
    """Its end is in the gap, the leader's is too; it must not state its old end again and again."""

    async def test(fleet: HostFleet) -> None:
        await fleet.join(0, 1)
        await fleet.create("orders", (0, 1))
        fleet.write(0, 5)
        end = await fleet.same()
        leave_alone(fleet, 0)
        copy = fleet.partition(0).log
        fleet.write(0, 5)
        copy.roll()
        fleet.write(0, 1)
        first = next(iterate(copy.read_cold(start=0, end=end, size_bytes_max=1, whole_first=True)))
        write_cleaned(copy, first.data)
        copy.replace(copy.segments[:1], 0)
        await fleet.elect("orders", 0, leader=1)
        fleet.write(1, 2)
        await fleet.same()
        assert (copy.end_offset, copy.segments[-1].base_offset) == (end + 6, 0)

    run(test, tmp_path)
