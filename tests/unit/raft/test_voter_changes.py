"""Voters come and go while a quorum works: what is waited for, what is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from ottla.errors import Code, KafkaError
from ottla.raft.core.messages import Member
from ottla.raft.driver import RaftDriver
from ottla.raft.voter_changes import VoterChanges
from support.raft_quorum import Quorum, directory


def changes_on(driver: RaftDriver, quorum: Quorum) -> VoterChanges:
    return VoterChanges(driver, address_of=lambda node: f"host-{node}:1", clock=quorum.system.clock)


def member(node: int) -> Member:
    return Member(node, directory(node))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(limited())


async def refused(change: Awaitable[None]) -> KafkaError:
    with pytest.raises(KafkaError) as error:
        await change
    return error.value


def test_a_node_is_waited_for_until_it_follows(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1])
        await asyncio.gather(quorum.start(0), quorum.start(1))
        leader = await quorum.leader()
        changes = changes_on(leader, quorum)
        early = await refused(changes.add_voter(member(2), seconds=0))
        assert (early.code, early.message) == (
            Code.request_timed_out,
            "The voters were not changed: node 2 does not follow the metadata log; try again.",
        )
        adding = asyncio.create_task(changes.add_voter(member(2), seconds=20))
        await asyncio.sleep(0.1)
        await quorum.start(2)
        await adding
        assert [(v.id, v.directory, v.endpoint) for v in leader.raft.log.voters][-1] == (2, directory(2), "host-2:1")
        assert leader.raft.log.commit >= leader.raft.log.voters_index
        assert (await refused(changes.add_voter(member(2), seconds=0))).code is Code.duplicate_voter
        await changes.add_voter(Member(2), seconds=0)
        await changes.remove_voter(member(2), seconds=0)
        assert [observer.id for observer in leader.describe().observers] == [2]
        assert (await refused(changes.remove_voter(member(2), seconds=0))).code is Code.voter_not_found
        await asyncio.gather(*map(quorum.stop, range(3)))

    run(scenario)


def test_a_change_waits_for_the_one_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1, 2])
        await asyncio.gather(*map(quorum.start, range(3)))
        leader = await quorum.leader()
        changes = changes_on(leader, quorum)
        first, second = (member(node) for node in range(3) if node != leader.raft.member.id)
        removing = asyncio.create_task(changes.remove_voter(first, seconds=5))
        await asyncio.sleep(0)
        hurried = await refused(changes.remove_voter(second, seconds=0))
        assert hurried.code is Code.request_timed_out and "another change" in str(hurried)
        await asyncio.gather(removing, changes.remove_voter(second, seconds=5))
        assert [voter.id for voter in leader.raft.log.voters] == [leader.raft.member.id]
        await asyncio.gather(*map(quorum.stop, range(3)))

    run(scenario)


def test_only_the_leader_changes_voters(tmp_path: Path) -> None:
    async def scenario() -> None:
        quorum = Quorum(tmp_path, [0, 1])
        await asyncio.gather(quorum.start(0), quorum.start(1))
        leader = (await quorum.leader()).raft.member.id
        changes = changes_on(quorum.network.drivers[1 - leader], quorum)
        for change in (changes.add_voter(member(2), seconds=0), changes.remove_voter(member(leader), seconds=0)):
            assert (await refused(change)).code is Code.not_controller
        await asyncio.gather(quorum.stop(0), quorum.stop(1))

    run(scenario)
