"""A group of the JoinGroup protocol. Pure: what happens is a method, what follows is returned as effects.

The group knows members, generations and who waits for what. How partitions are spread is the members' own business, so
eager and cooperative rebalancing look the same from here.
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
    """As the shard sees it: what it is, what members ask, and time."""

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
        """It never had a member, so that the log does not know it. Ids may be given out."""
        return self.is_empty and self.generation == 0 and not self.protocol_type

    @property
    def empty_since_ms(self) -> int | None:
        return self.state_since_ms if self.is_empty and self.protocol_type else None

    @property
    def may_expire(self) -> bool:
        return True

    @property
    def offsets_may_expire(self) -> bool:
        """Those of topics that nobody consumes, once it is known which are."""
        is_known = self.current is State.STABLE and self.protocol_type == CONSUMER and self.topics is not None
        return self.is_empty or is_known

    def is_subscribed(self, topic: str) -> bool:
        return self.protocol_type == CONSUMER if self.topics is None else topic in self.topics

    @property
    def awaits_members(self) -> bool:
        """Ids have been given out that are not used yet."""
        return self.roster.awaits_members

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
        member.alive(now)
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
        """Anybody may read."""

    def committed(self, member_id: str, now: float) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.alive(now)

    def check_offset_delete(self) -> None:
        if not self.is_empty and self.protocol_type != CONSUMER:
            raise KafkaError(Code.non_empty_group)

    def tombstones(self) -> Sequence[Record]:
        return [group_tombstone(self.group_id)]

    # time, beginning and end

    def tick(self, now: float) -> Effects:
        effects: Effects = []
        if self.join_deadline <= now:
            self.join_time_is_over(now, effects)
        if self.sync_deadline <= now:
            self.sync_time_is_over(now, effects)
        for member in [member for member in self.members.values() if member.deadline <= now]:
            leaving.session_ended(self, member, now, effects)
        for member_id in self.roster.unused(now):
            leaving.pending_ended(self, member_id, now, effects)
        if (due := self._next_deadline()) != NEVER:
            effects.append(Wake(due))
        return effects

    def _next_deadline(self) -> float:
        return min(self.roster.next_deadline, self.join_deadline, self.sync_deadline)

    def loaded(self, now: float) -> Effects:
        """Sessions begin again; members of a group that has become too large have to join again."""
        for member in self.members.values():
            member.alive(now)
        effects: Effects = []
        if len(self.members) > self.rules.members_max:
            self.rebalance("the group is larger than group.max.size", now, effects)
        return effects + self.tick(now)

    def unload(self) -> Effects:
        return self.refuse_waiting(Code.not_coordinator)

    def refuse_waiting(self, code: Code) -> Effects:
        """Whoever waits in the middle of a rebalance gets this code."""
        effects: Effects = []
        for member in self.members.values():
            effects += member.answer_join(Joined(code, member_id=member.member_id))
            effects += member.answer_sync(Synced(code))
        return effects
