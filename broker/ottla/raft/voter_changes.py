"""Adds and removes voters while the quorum works. Runs on the node that leads it."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.raft.core.membership import addition_waits_for, check_addition, check_removal, steps_to_add, steps_to_remove
from ottla.raft.core.messages import Member, Voters
from ottla.raft.core.raft import NotLeader, Raft, VoterChangeRefused
from ottla.raft.driver import RaftDriver

__all__ = ["VoterAdministration", "VoterChanges"]

POLL_SECONDS = 0.05


class VoterAdministration(Protocol):
    """Changes the voters: on this node if it leads the quorum, otherwise by a request to the leader.

    Both return when the change is committed, or raise KafkaError. `seconds` limits the wait before the change starts:
    for the node to follow and catch up, and for another change to be committed.
    """

    async def add_voter(self, asked: Member, *, seconds: float) -> None: ...
    async def remove_voter(self, asked: Member, *, seconds: float) -> None: ...


class VoterChanges:
    """KafkaError(NOT_CONTROLLER) where another node leads. `address_of` is None on a node without a gRPC port."""

    def __init__(self, driver: RaftDriver, *, address_of: Callable[[int], str] | None, clock: Clock) -> None:
        self._driver = driver
        self._address_of = address_of
        self._clock = clock

    async def add_voter(self, asked: Member, *, seconds: float) -> None:
        await self._wait_until_clear(lambda: self._addition_waits_for(asked), seconds)
        raft = self._driver.raft
        peer = raft.peers.get(asked.id)
        if peer is not None and self._address_of is not None:
            await self._take(steps_to_add(raft.log.voters, peer.member, self._address_of(asked.id)))

    async def remove_voter(self, asked: Member, *, seconds: float) -> None:
        await self._wait_until_clear(lambda: self._removal_waits_for(asked), seconds)
        await self._take(steps_to_remove(self._driver.raft.log.voters, asked.id))

    async def _wait_until_clear(self, waits_for: Callable[[], str | None], seconds: float) -> None:
        """Wait until `waits_for` returns None. The caller must not await before it acts on that."""
        give_up_at = self._clock.monotonic() + seconds
        while (reason := waits_for()) is not None:
            if self._clock.monotonic() >= give_up_at:
                raise KafkaError(Code.request_timed_out, f"The voters were not changed: {reason}; try again.")
            await asyncio.sleep(POLL_SECONDS)

    def _addition_waits_for(self, asked: Member) -> str | None:
        raft = self._leading()
        if reason := _unsettled(raft):
            return reason
        check_addition(raft.log.voters, asked)
        if asked.id == raft.member.id:
            return None
        if self._address_of is None:
            text = f"This broker runs alone, so node {asked.id} cannot follow it; give it an ottla.grpc.port."
            raise KafkaError(Code.unsupported_version, text)
        heard_since = self._clock.monotonic() - raft.config.silence_s
        peer = raft.peers.get(asked.id)
        return addition_waits_for(asked, peer, commit=raft.log.commit, heard_since=heard_since)

    def _removal_waits_for(self, asked: Member) -> str | None:
        raft = self._leading()
        if reason := _unsettled(raft):
            return reason
        check_removal(raft.log.voters, asked)
        return None

    def _leading(self) -> Raft:
        if not self._driver.leads:
            raise self._not_controller()
        return self._driver.raft

    async def _take(self, steps: list[Voters]) -> None:
        try:
            for voters in steps:
                await self._driver.change_voters(voters)
        except VoterChangeRefused as refused:  # another change was proposed between two steps
            raise KafkaError(Code.request_timed_out, f"The voters were not changed: {refused}.") from None
        except NotLeader:
            raise self._not_controller() from None

    def _not_controller(self) -> KafkaError:
        leader = self._driver.leader_id
        where = f"node {leader} does" if leader is not None else "no leader is known"
        return KafkaError(Code.not_controller, f"This node does not lead the quorum; {where}.")


def _unsettled(raft: Raft) -> str | None:
    """A change that is in the log and not committed may be lost, so it must be committed first."""
    is_pending = raft.log.voters_index > raft.log.commit
    return "another change of voters is not committed yet" if is_pending else None
