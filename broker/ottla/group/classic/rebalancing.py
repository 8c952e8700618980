"""Rebalancing: which members the next generation waits for, how long, and what follows. Pure.

`Rebalancing` owns the state of a classic group. Requests (`joining`, `syncing`, `leaving`, `static`) change it through
its methods only. Timers are deadlines in the data (`join_deadline`, `sync_deadline`, one per member and pending id).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ottla.coordination.core.effects import Effects, Record, Wake, Write
from ottla.errors import Code
from ottla.group.classic.member import NEVER, Joined, Member, Synced
from ottla.group.classic.protocols import CONSUMER, chosen, subscribed_topics
from ottla.group.classic.records import group_record
from ottla.group.classic.roster import Roster
from ottla.group.classic.states import NEXT, Event, State

__all__ = ["Rebalancing", "Rules"]


class Rules(NamedTuple):
    """The rules of all classic groups of this broker, and the sources of ids and wall-clock time."""

    new_id: Callable[[], str]
    wall_ms: Callable[[], int]
    initial_delay_ms: int = 3000
    members_max: int = 2**31 - 1
    first_answer_s_max: float = 300.0  # how long a new member may wait for its first answer before it is removed


class Rebalancing:
    """Invariant: a group in state Empty has no members."""

    def __init__(self, group_id: str, rules: Rules) -> None:
        self.group_id = group_id
        self.rules = rules
        self.current = State.EMPTY
        self.previous = State.DEAD
        self.generation = 0
        self.protocol_type = ""  # empty for a simple group: it has offsets and never had members
        self.protocol_name: str | None = None
        self.roster = Roster()
        self.members: Mapping[str, Member] = self.roster.members
        self.state_since_ms: int | None = rules.wall_ms()
        self.topics: frozenset[str] | None = None  # None: not known
        self.join_deadline = NEVER
        self.sync_deadline = NEVER
        self.reason = ""
        self._missing_syncs: set[str] = set()
        self._delay_left_s = 0.0  # how much longer the initial rebalance may be delayed
        self._new_members_joined = False  # since it was last delayed

    @property
    def leader(self) -> str | None:
        return self.roster.leader

    def joined(self, member_id: str, *, members: bool, leader: str | None = None) -> Joined:
        """The current generation as a member gets it; `members`: include all of them, for the leader."""
        return Joined(
            member_id=member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=leader or self.leader or "",
            members=self._listed() if members else (),
        )

    def _listed(self) -> list[tuple[str, str | None, bytes]]:
        return [(m.member_id, m.instance_id, m.metadata(self.protocol_name)) for m in self.members.values()]

    def record(self, assignment: Mapping[str, bytes]) -> Record:
        """The group's record with this assignment; members without an entry get nothing."""
        return group_record(
            self.group_id,
            protocol_type=self.protocol_type,
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            since_ms=self.state_since_ms,
            members=[(member, assignment.get(member.member_id, b"")) for member in self.members.values()],
        )

    def restore(
        self,
        members: Sequence[Member],
        *,
        generation: int,
        protocol_type: str,
        protocol_name: str | None,
        leader: str | None,
        since_ms: int | None,
    ) -> None:
        """Restore the group from a record."""
        for member in members:
            self.roster.add(member)
        self.generation = generation
        self.protocol_type, self.protocol_name = protocol_type, protocol_name
        self.roster.restore_leader(leader)
        self.state_since_ms = since_ms
        self.current = State.STABLE if members else State.EMPTY
        self._update_topics()

    def _update_topics(self) -> None:
        is_consumer = self.protocol_type == CONSUMER
        self.topics = subscribed_topics(self.members.values(), self.protocol_name) if is_consumer else None

    def enter(self, event: Event) -> None:
        self.previous, self.current = self.current, NEXT[self.current, event]
        self.state_since_ms = self.rules.wall_ms()

    # members

    def admit(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.roster.add(member)
        self._new_members_joined = True

    def remove(self, member_id: str) -> None:
        self.roster.remove(member_id)
        self._missing_syncs.discard(member_id)

    def replace(self, old: Member, new: Member) -> None:
        self.roster.replace(old, new)
        self._missing_syncs.discard(old.member_id)

    # joining

    def rebalance_or_complete(self, reason: str, now: float, effects: Effects) -> None:
        if self.current is not State.PREPARING:
            self.rebalance(reason, now, effects)
        elif self.previous is not State.EMPTY and self.roster.all_joined:
            self._complete(now, effects)

    def rebalance(self, reason: str, now: float, effects: Effects) -> None:
        """All members have to rejoin. A group that was empty delays the rebalance so that more members can join."""
        self.reason = reason
        if self.current is State.COMPLETING:
            for member in self.members.values():
                member.assign(b"")
            self._answer_syncs(Synced(Code.rebalance_in_progress), now, effects)
        self._missing_syncs.clear()
        self.sync_deadline = NEVER
        self.enter(Event.REBALANCE)
        if self.previous is State.EMPTY:
            delay_s = self.rules.initial_delay_ms / 1000
            self._delay_left_s = max(self.roster.rebalance_s - delay_s, 0.0)
            self._new_members_joined = False
            self._wait_for_members(delay_s, now, effects)
        elif self.roster.all_joined:
            self._complete(now, effects)
        else:
            self._wait_for_members(self.roster.rebalance_s, now, effects)

    def _wait_for_members(self, seconds: float, now: float, effects: Effects) -> None:
        self.join_deadline = now + seconds
        effects.append(Wake(self.join_deadline))

    def join_deadline_passed(self, now: float, effects: Effects) -> None:
        """Complete the rebalance, or delay the initial one further while new members join, up to the rebalance
        timeout."""
        delay_s = min(self.rules.initial_delay_ms / 1000, self._delay_left_s)
        if self.previous is State.EMPTY and self._new_members_joined and delay_s > 0:
            self._new_members_joined = False
            self._delay_left_s -= delay_s
            self._wait_for_members(delay_s, now, effects)
        else:
            self._complete(now, effects)

    def _complete(self, now: float, effects: Effects) -> None:
        """Start the next generation with the members that joined. Static members stay until their session expires."""
        self.join_deadline = NEVER
        gone = [m.member_id for m in self.members.values() if not m.waits_to_join and m.instance_id is None]
        for member_id in gone:
            self.remove(member_id)
        if self.members and not self.roster.elect_leader():
            # only static members are left and none has rejoined: wait until they do or their sessions expire
            self._wait_for_members(self.roster.rebalance_s, now, effects)
            return
        self.generation += 1
        if self.members:
            self._begin_generation(now, effects)
        else:
            self._become_empty(effects)

    def _begin_generation(self, now: float, effects: Effects) -> None:
        self.protocol_name = chosen(self.members.values())
        self._update_topics()
        self.enter(Event.ALL_JOINED)
        for member in self.members.values():
            answer = self.joined(member.member_id, members=member.member_id == self.leader)
            effects += [*member.answer_join(answer), Wake(member.renew_session(now))]
            member.begin_generation()
        self._missing_syncs = set(self.members)
        self.sync_deadline = now + self.roster.rebalance_s
        effects.append(Wake(self.sync_deadline))

    def _become_empty(self, effects: Effects) -> None:
        self.protocol_name = None
        self._update_topics()
        self.enter(Event.NONE_JOINED)
        # If this write is lost, the next leader loads the last generation, and its sessions expire.
        effects.append(Write([self.record({})], lambda code, now: []))

    # assignments

    def member_synced(self, member_id: str) -> None:
        self._missing_syncs.discard(member_id)
        if not self._missing_syncs:
            self.sync_deadline = NEVER

    def assign(self, given: Mapping[str, bytes], effects: Effects) -> None:
        """Write the leader's assignment. It takes effect, and members are answered, when it is committed."""
        assignment = {member_id: given.get(member_id, b"") for member_id in self.members}
        then = partial(self._assigned, self.generation, assignment)
        effects.append(Write([self.record(assignment)], then))

    def _assigned(self, generation: int, assignment: Mapping[str, bytes], code: Code, now: float) -> Effects:
        """Does nothing if the group has left this generation meanwhile."""
        effects: Effects = []
        if self.current is not State.COMPLETING or self.generation != generation:
            return effects
        if code is Code.none:
            for member in self.members.values():
                member.assign(assignment.get(member.member_id, b""))
            self.enter(Event.ASSIGNED)
            self._answer_syncs(Synced(Code.none, self.protocol_type, self.protocol_name), now, effects)
        else:
            self._answer_syncs(Synced(code), now, effects)
            self.rebalance(f"the assignment could not be stored: {code.name}", now, effects)
        return effects

    def _answer_syncs(self, answer: Synced, now: float, effects: Effects) -> None:
        """Answer all waiting SyncGroups; without an error each member gets its own assignment.

        Their sessions restart: while they waited they could not send heartbeats.
        """
        for member in self.members.values():
            if member.waits_for_assignment:
                own = answer if answer.code is not Code.none else answer._replace(assignment=member.assignment)
                effects += [*member.answer_sync(own), Wake(member.renew_session(now))]

    def sync_deadline_passed(self, now: float, effects: Effects) -> None:
        """Remove the members that joined and did not send SyncGroup."""
        self.sync_deadline = NEVER
        missing = sorted(self._missing_syncs)
        for member_id in missing:
            self.remove(member_id)
        if missing and self.current in (State.COMPLETING, State.STABLE):
            self.rebalance(f"{', '.join(missing)} did not send SyncGroup in time", now, effects)
