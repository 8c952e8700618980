"""A group of the JoinGroup protocol. Pure: every event is a method that returns effects.

The group knows its members, generations and waiting requests. The members assign partitions themselves, so eager and
cooperative rebalancing look the same here.
"""

from collections.abc import Sequence
from typing import Any

from ottla.coordination.core.effects import Effects, Record, Wake
from ottla.errors import Code, KafkaError
from ottla.group.classic import joining, leaving, syncing
from ottla.group.classic.member import NEVER, Join, Joined, Leave, Sync, Synced
from ottla.group.classic.protocols import CONSUMER
from ottla.group.classic.rebalancing import Rebalancing, Rules
from ottla.group.classic.records import group_tombstone
from ottla.group.classic.states import State

__all__ = ["ClassicGroup", "Rules"]


class ClassicGroup(Rebalancing):
    """The group as the shard sees it: its state, requests of members, and time."""

    type = "classic"

    # what it is

    @property
    def state(self) -> str:
        return self.current.value

    @property
    def summary(self) -> str:
        return f"generation {self.generation}, {len(self.members)} members; {self.reason}"

    @property
    def is_empty(self) -> bool:
        return self.current is State.EMPTY

    @property
    def is_unjoined(self) -> bool:
        """It never had a member, so the log does not have it. Member ids may be pending."""
        return self.is_empty and self.generation == 0 and not self.protocol_type

    @property
    def empty_since_ms(self) -> int | None:
        return self.state_since_ms if self.is_empty and self.protocol_type else None

    @property
    def may_expire(self) -> bool:
        return True

    @property
    def offsets_may_expire(self) -> bool:
        """Offsets of topics that no member consumes; none while the subscriptions are not known."""
        is_known = self.current is State.STABLE and self.protocol_type == CONSUMER and self.topics is not None
        return self.is_empty or is_known

    def is_subscribed(self, topic: str) -> bool:
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    @property
    def has_pending_members(self) -> bool:
        """Member ids were given out and are not used yet (KIP-394)."""
        return self.roster.has_pending_members

    # what members ask

    def join(self, request: Join, to: Any, now: float) -> Effects:
        return joining.join(self, request, to, now)

    def sync(self, request: Sync, to: Any, now: float) -> Effects:
        return syncing.sync(self, request, to, now)

    def leave(self, members: Sequence[Leave], to: Any, now: float) -> Effects:
        return leaving.leave(self, members, to, now)

    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        member = self.roster.check(member_id, instance_id)
        if generation != self.generation:
            raise KafkaError(Code.illegal_generation)
        member.renew_session(now)
        if self.current is State.PREPARING:
            raise KafkaError(Code.rebalance_in_progress)
        return []

    # offsets

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        if generation < 0 and self.current is State.EMPTY:
            return  # an administrator, or a consumer that assigns itself
        if generation < 0 and not member_id and instance_id is None:
            raise KafkaError(Code.unknown_member_id)
        self.roster.check(member_id, instance_id)
        if generation != self.generation:
            raise KafkaError(Code.illegal_generation)
        if self.current is State.COMPLETING and not transactional:
            raise KafkaError(Code.rebalance_in_progress)

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """Always allowed."""

    def committed(self, member_id: str, now: float) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.renew_session(now)

    def check_offset_delete(self) -> None:
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise KafkaError(Code.non_empty_group)

    def tombstones(self) -> Sequence[Record]:
        return [group_tombstone(self.group_id)]

    # time, beginning and end

    def tick(self, now: float) -> Effects:
        effects: Effects = []
        if self.join_deadline <= now:
            self.join_deadline_passed(now, effects)
        if self.sync_deadline <= now:
            self.sync_deadline_passed(now, effects)
        for member in [member for member in self.members.values() if member.deadline <= now]:
            leaving.session_expired(self, member, now, effects)
        for member_id in self.roster.expired_pending(now):
            leaving.pending_expired(self, member_id, now, effects)
        if (due := self._next_deadline()) != NEVER:
            effects.append(Wake(due))
        return effects

    def _next_deadline(self) -> float:
        return min(self.roster.next_deadline, self.join_deadline, self.sync_deadline)

    def loaded(self, now: float) -> Effects:
        """Restart the sessions. If the group is larger than group.max.size, all members have to rejoin."""
        for member in self.members.values():
            member.renew_session(now)
        effects: Effects = []
        if len(self.members) > self.rules.members_max:
            self.rebalance("the group is larger than group.max.size", now, effects)
        return effects + self.tick(now)

    def unload(self) -> Effects:
        return self.refuse_waiting(Code.not_coordinator)

    def refuse_waiting(self, code: Code) -> Effects:
        """Answer all requests that wait for a rebalance with this code."""
        effects: Effects = []
        for member in self.members.values():
            effects += member.answer_join(Joined(code, member_id=member.member_id))
            effects += member.answer_sync(Synced(code))
        return effects
