"""Coming together for the next generation: who is waited for, how long, and what follows. Pure.

`Rebalancing` owns the state of a classic group. Requests (`joining`, `syncing`, `leaving`, `static`) change it by its
methods alone. Timers are deadlines in the data (`join_deadline`, `sync_deadline`, one per member and promised id).
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
    """What holds for all classic groups of this broker, and where ids and the wall clock's time come from."""

    new_id: Callable[[], str]
    wall_ms: Callable[[], int]
    initial_delay_ms: int = 3000
    members_max: int = 2**31 - 1
    first_answer_s_max: float = 300.0  # how long a new member is waited for while it waits for its first answer


class Rebalancing:
    """Empty has no members."""

    def __init__(self, group_id: str, rules: Rules) -> None:
        self.group_id = group_id
        self.rules = rules
        self.current = State.EMPTY
        self.previous = State.DEAD
        self.generation = 0
        self.protocol_type = ""  # of a simple group: it has offsets and never had members
        self.protocol_name: str | None = None
        self.roster = Roster()
        self.members: Mapping[str, Member] = self.roster.members
        self.state_since_ms: int | None = rules.wall_ms()
        self.topics: frozenset[str] | None = None  # None: not known
        self.join_deadline = NEVER
        self.sync_deadline = NEVER
        self.reason = ""
        self._missing_syncs: set[str] = set()
        self._delay_left_s = 0.0  # by which the first rebalance may still be put off
        self._newcomers = False  # since it was last put off

    @property
    def leader(self) -> str | None:
        return self.roster.leader

    def joined(self, member_id: str, *, members: bool, leader: str | None = None) -> Joined:
        """The present generation as a member gets it; `members`: with all of them, for the leader."""
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
        """The group as it is, with what the leader has assigned: members without an entry get nothing."""
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
        """As a record says."""
        for member in members:
            self.roster.add(member)
        self.generation = generation
        self.protocol_type, self.protocol_name = protocol_type, protocol_name
        self.roster.restore_leader(leader)
        self.state_since_ms = since_ms
        self.current = State.STABLE if members else State.EMPTY
        self._learn_topics()

    def _learn_topics(self) -> None:
        is_consumer = self.protocol_type == CONSUMER
        self.topics = subscribed_topics(self.members.values(), self.protocol_name) if is_consumer else None

    def enter(self, event: Event) -> None:
        self.previous, self.current = self.current, NEXT[self.current, event]
        self.state_since_ms = self.rules.wall_ms()

    # who comes and goes

    def admit(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.roster.add(member)
        self._newcomers = True

    def remove(self, member_id: str) -> None:
        self.roster.remove(member_id)
        self._missing_syncs.discard(member_id)

    def replace(self, old: Member, new: Member) -> None:
        self.roster.replace(old, new)
        self._missing_syncs.discard(old.member_id)

    # gathering

    def rebalance_or_complete(self, reason: str, now: float, effects: Effects) -> None:
        if self.current is not State.PREPARING:
            self.rebalance(reason, now, effects)
        elif self.previous is not State.EMPTY and self.roster.all_joined:
            self._complete(now, effects)

    def rebalance(self, reason: str, now: float, effects: Effects) -> None:
        """All members have to join again; a group that was empty waits a while for more of them."""
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
            self._newcomers = False
            self._wait_for_members(delay_s, now, effects)
        elif self.roster.all_joined:
            self._complete(now, effects)
        else:
            self._wait_for_members(self.roster.rebalance_s, now, effects)

    def _wait_for_members(self, seconds: float, now: float, effects: Effects) -> None:
        self.join_deadline = now + seconds
        effects.append(Wake(self.join_deadline))

    def join_time_is_over(self, now: float, effects: Effects) -> None:
        """The first rebalance is put off further as long as new members come, within the rebalance timeout."""
        delay_s = min(self.rules.initial_delay_ms / 1000, self._delay_left_s)
        if self.previous is State.EMPTY and self._newcomers and delay_s > 0:
            self._newcomers = False
            self._delay_left_s -= delay_s
            self._wait_for_members(delay_s, now, effects)
        else:
            self._complete(now, effects)

    def _complete(self, now: float, effects: Effects) -> None:
        """The next generation begins with those who came. Static members keep their place while their session lasts."""
        self.join_deadline = NEVER
        gone = [m.member_id for m in self.members.values() if not m.waits_to_join and m.instance_id is None]
        for member_id in gone:
            self.remove(member_id)
        if self.members and not self.roster.elect_leader():
            # only static members are left, and none has come: their sessions decide
            self._wait_for_members(self.roster.rebalance_s, now, effects)
            return
        self.generation += 1
        if self.members:
            self._begin_generation(now, effects)
        else:
            self._become_empty(effects)

    def _begin_generation(self, now: float, effects: Effects) -> None:
        self.protocol_name = chosen(self.members.values())
        self._learn_topics()
        self.enter(Event.GATHERED)
        for member in self.members.values():
            answer = self.joined(member.member_id, members=member.member_id == self.leader)
            effects += [*member.answer_join(answer), Wake(member.alive(now))]
            member.begin_generation()
        self._missing_syncs = set(self.members)
        self.sync_deadline = now + self.roster.rebalance_s
        effects.append(Wake(self.sync_deadline))

    def _become_empty(self, effects: Effects) -> None:
        self.protocol_name = None
        self._learn_topics()
        self.enter(Event.DESERTED)
        # If this is lost, the last generation comes back with the log and its sessions end.
        effects.append(Write([self.record({})], lambda code, now: []))

    # assignments

    def member_synced(self, member_id: str) -> None:
        self._missing_syncs.discard(member_id)
        if not self._missing_syncs:
            self.sync_deadline = NEVER

    def assign(self, given: Mapping[str, bytes], effects: Effects) -> None:
        """The leader's assignment is written. It is in force, and members are answered, when that is committed."""
        assignment = {member_id: given.get(member_id, b"") for member_id in self.members}
        then = partial(self._assigned, self.generation, assignment)
        effects.append(Write([self.record(assignment)], then))

    def _assigned(self, generation: int, assignment: Mapping[str, bytes], code: Code, now: float) -> Effects:
        """The group may have moved on meanwhile: then nothing follows."""
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
        """All who wait; with no error each gets its own assignment.

        Their sessions begin again: while they waited they could not send heartbeats.
        """
        for member in self.members.values():
            if member.waits_for_assignment:
                own = answer if answer.code is not Code.none else answer._replace(assignment=member.assignment)
                effects += [*member.answer_sync(own), Wake(member.alive(now))]

    def sync_time_is_over(self, now: float, effects: Effects) -> None:
        """Members that joined and never asked for their assignment are gone."""
        self.sync_deadline = NEVER
        missing = sorted(self._missing_syncs)
        for member_id in missing:
            self.remove(member_id)
        if missing and self.current in (State.COMPLETING, State.STABLE):
            self.rebalance(f"{', '.join(missing)} did not ask for an assignment in time", now, effects)
