"""A consumer group (KIP-848) as its shard sees it. Pure.

`heartbeat` handles the group's own protocol. Here: requests of members that use the classic protocol, and removals.
"""

from collections.abc import Sequence
from typing import Any

from ottla.coordination.core.effects import Effects, Write
from ottla.group.consumer import classic_members, migration
from ottla.group.consumer.advance import removal
from ottla.group.consumer.member import Member
from ottla.group.consumer.membership import ConsumerMembership
from ottla.group.consumer.records import KINDS, decode
from ottla.group.contract.records import record_type
from ottla.group.heartbeats.group import Then, replay_entry

__all__ = ["ConsumerGroup"]


class ConsumerGroup(ConsumerMembership):
    def remove(self, members: Sequence[Member], now: float, then: Then) -> Write:
        """The effect that removes them. If only classic members remain, the group becomes a classic one."""
        if migration.may_downgrade(self, members):
            return migration.downgrade(self, {member.id for member in members}, now, then=then)
        rules = self.rules
        removed = removal(self.log, members, image=rules.image(), matching=rules.matching, now_ms=rules.wall_ms())
        return self.removed(removed, now, then)

    def join(self, request: Any, to: Any, now: float) -> Effects:
        return classic_members.join(self, request, to, now)

    def sync(self, request: Any, to: Any, now: float) -> Effects:
        return classic_members.sync(self, request, to, now)

    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        return classic_members.heartbeat(self, member_id, instance_id, generation, now)

    def leave(self, members: Sequence[Any], to: Any, now: float) -> Effects:
        return classic_members.leave(self, members, to, now)


@record_type(*sorted(KINDS))
def replay_consumer_record(state: Any, key: memoryview, value: memoryview | None) -> None:
    entry = decode(bytes(key), None if value is None else bytes(value))
    replay_entry(state, entry, ConsumerGroup, state.new_consumer_group)
