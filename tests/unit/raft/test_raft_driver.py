"""Three drivers on one loop with real disks: elections, commits, the death of a leader, snapshots to the one behind."""

import asyncio
import selectors
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ottla.raft.core.messages import InstallSnapshot, Snapshot, Voter
from ottla.raft.core.raft import NotLeader, VoterChangeRefused
from ottla.raft.driver import RaftDriver
from ottla.system import System
from support.raft_quorum import Quorum, directory, until


def test_a_quorum_survives_the_death_of_its_leader(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1, 2])
        await asyncio.gather(*map(quorum.start, range(3)))
        words = [f"a{number}".encode() for number in range(10)]
        for word in words:
            await quorum.propose(word)
        await quorum.agreement(words)
        dead = (await quorum.leader()).raft.member.id
        assert quorum.machines[dead].leads
        await quorum.stop(dead)
        more = [f"b{number}".encode() for number in range(30)]
        for word in more:
            await quorum.propose(word)
        leader = await quorum.leader()
        await until(lambda: leader.raft.log.offset > len(words))
        await quorum.start(dead)  # the log it needs is compacted by now
        await quorum.agreement(words + more)
        await quorum.propose(b"last")
        leader = await quorum.leader()
        await until(lambda: len({each.log_end_offset for each in leader.describe().voters}) == 1)
        state = leader.describe()
        assert sorted(each.id for each in state.voters) == [0, 1, 2]
        assert {each.log_end_offset for each in state.voters} == {state.high_watermark}
        assert all(each.last_fetch_ms > 0 and each.last_caught_up_ms > 0 for each in state.voters)
        await asyncio.gather(*map(quorum.stop, range(3)))

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_an_observer_follows_and_becomes_a_voter(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0])
        await asyncio.gather(quorum.start(0), quorum.start(1))
        await quorum.propose(b"one")
        await quorum.agreement([b"one"])
        leader = await quorum.leader()
        assert [each.id for each in leader.describe().observers] == [1]
        with pytest.raises(NotLeader) as refused:
            await quorum.network.drivers[1].propose([b"two"])
        assert refused.value.leader == 0
        both = (*quorum.seed, Voter(1, directory(1)))
        await leader.change_voters(both)
        with pytest.raises(VoterChangeRefused):
            await leader.change_voters((Voter(5, directory(5)), Voter(6, directory(6))))
        assert sorted(each.id for each in leader.describe().voters) == [0, 1]
        await quorum.propose(b"two")
        await quorum.agreement([b"one", b"two"])
        await asyncio.gather(quorum.stop(0), quorum.stop(1))

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_proposals_of_a_leader_that_stops_fail(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1])
        await asyncio.gather(quorum.start(0), quorum.start(1))
        leader = await quorum.leader()
        other = 1 - leader.raft.member.id
        await quorum.stop(other)
        pending = leader.submit([b"never committed"])
        with pytest.raises(NotLeader):
            await pending.done  # it hears no majority and steps down
        assert not quorum.machines[leader.raft.member.id].leads
        await quorum.stop(leader.raft.member.id)

    asyncio.run(asyncio.wait_for(scenario(), 30))


class VirtualSelector(selectors.SelectSelector):
    """Waiting costs nothing: the clock jumps."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.now += timeout or 0.0
        return super().select(0)


class VirtualTime:
    """Clock, threads and loop of a simulated machine."""

    def __init__(self) -> None:
        self.selector = VirtualSelector()
        self.loop = asyncio.SelectorEventLoop(self.selector)
        self.loop.time = self.monotonic  # type: ignore[method-assign]

    def monotonic(self) -> float:
        return self.selector.now

    def wall_ms(self) -> int:
        return int(self.selector.now * 1000)

    def run(self, work: Callable[..., Any], *arguments: object) -> "asyncio.Future[Any]":
        future = self.loop.create_future()
        self.loop.call_later(0.004, lambda: future.set_result(work(*arguments)))
        return future


def test_the_driver_runs_on_virtual_time_and_repeats_itself(tmp_path: Path) -> None:
    def play(folder: Path) -> tuple[float, int, list[bytes]]:
        time = VirtualTime()
        system = System(clock=time, threads=time, random=Random(9))
        quorum = Quorum(folder, [0, 1, 2], system=system)

        async def scenario() -> None:
            for node in range(3):
                await quorum.start(node)
            for number in range(20):
                await quorum.propose(str(number).encode())
            await asyncio.sleep(20)

        time.loop.run_until_complete(scenario())
        leader = time.loop.run_until_complete(quorum.leader())
        for node in range(3):
            time.loop.run_until_complete(quorum.stop(node))
        return time.monotonic(), leader.term, quorum.machines[2].words

    first = play(tmp_path / "first")
    assert first == play(tmp_path / "second")
    assert first[0] > 20 and first[1] == 1 and len(first[2]) == 20


def test_a_leader_that_removes_itself_hears_that_it_did(tmp_path: Path) -> None:
    """Its disk may be busy when the others acknowledge: then it has stepped down before it applies the entry."""

    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1, 2])
        await asyncio.gather(*map(quorum.start, range(3)))
        leader = await quorum.leader()
        busy = asyncio.create_task(keep_proposing(leader))
        others = tuple(voter for voter in leader.raft.log.voters if voter.id != leader.raft.member.id)
        await leader.change_voters(others)
        await busy
        successor = await quorum.leader()
        assert successor is not leader and successor.raft.log.voters == others
        await asyncio.gather(*map(quorum.stop, range(3)))

    asyncio.run(asyncio.wait_for(scenario(), 30))


async def keep_proposing(leader: RaftDriver) -> None:
    while True:
        try:
            leader.submit([b"more"]).done.add_done_callback(asyncio.Future.exception)
        except NotLeader:
            return
        await asyncio.sleep(0)


def test_a_snapshot_that_cannot_be_restored_takes_no_logs_place(tmp_path: Path) -> None:
    """Also when it comes from the leader: the node would end with it, and at every start."""

    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1, 2])
        await asyncio.gather(*map(quorum.start, range(3)))
        await quorum.propose(b"one")
        await quorum.agreement([b"one"])
        leader = (await quorum.leader()).raft
        victim = next(each for each in quorum.network.drivers.values() if each.raft.member != leader.member)
        nobody = Snapshot(10_000, leader.term, (), b"junk")
        victim.receive(InstallSnapshot(leader.member, victim.raft.member.id, leader.term, nobody))
        unread = Snapshot(10_000, leader.term, quorum.seed, b"junk")
        victim._unreadable_snapshot = lambda snapshot: "it makes no sense"
        victim.receive(InstallSnapshot(leader.member, victim.raft.member.id, leader.term, unread))
        await quorum.propose(b"two")
        await quorum.agreement([b"one", b"two"])
        assert victim.raft.log.last_index < 10_000 and not victim.closed.done()
        await asyncio.gather(*map(quorum.stop, range(3)))

    asyncio.run(asyncio.wait_for(scenario(), 30))
