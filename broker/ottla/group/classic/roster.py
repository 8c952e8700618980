"""The members of a classic group, its leader, and its pending member ids. Pure.

Invariants: `leader` is a member unless the group has none; every instance id belongs to one member.
"""

from collections.abc import Mapping

from ottla.errors import Code, KafkaError
from ottla.group.classic.member import NEVER, Member

__all__ = ["Roster"]


class Roster:
    """`members`, by id, are in the order in which they joined: some assignors depend on it."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self.members: Mapping[str, Member] = self._members  # the same, read-only
        self.leader: str | None = None
        self._instances: dict[str, str] = {}  # instance id → member id
        self._pending: dict[str, float] = {}  # ids given out and not used yet → when they expire

    # looking up

    def check(self, member_id: str, instance_id: str | None) -> Member:
        """KafkaError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID when another member has replaced the instance (KIP-345)."""
        if instance_id is not None:
            known = self._instances.get(instance_id)
            if known is not None and known != member_id:
                raise KafkaError(Code.fenced_instance_id)
        member = self._members.get(member_id)
        if member is None or (instance_id is not None and instance_id not in self._instances):
            raise KafkaError(Code.unknown_member_id)
        return member

    def of_instance(self, instance_id: str | None) -> Member | None:
        member_id = None if instance_id is None else self._instances.get(instance_id)
        return None if member_id is None else self._members[member_id]

    @property
    def rebalance_s(self) -> float:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0) / 1000

    @property
    def waiting(self) -> int:
        return sum(member.waits_to_join for member in self._members.values())

    @property
    def all_joined(self) -> bool:
        return not self._pending and all(member.waits_to_join for member in self._members.values())

    @property
    def next_deadline(self) -> float:
        members = min((member.deadline for member in self._members.values()), default=NEVER)
        return min(members, min(self._pending.values(), default=NEVER))

    # changing

    def add(self, member: Member) -> None:
        if not self._members:
            self.leader = member.member_id
        self._members[member.member_id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        self._pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        member = self._members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self._instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        self._pending.pop(member_id, None)

    def replace(self, old: Member, new: Member) -> None:
        """A static member with a new id replaces the old one, at the same place in the order."""
        assert old.instance_id is not None
        assert old.instance_id == new.instance_id
        members = [new if member is old else member for member in self._members.values()]
        self._members.clear()
        self._members.update((member.member_id, member) for member in members)
        self._instances[old.instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id

    # the leader

    def restore_leader(self, leader: str | None) -> None:
        self.leader = leader if leader in self._members else next(iter(self._members), None)

    def elect_leader(self) -> bool:
        """Keep the leader if it has joined, otherwise elect the first member that has. False: no member has joined."""
        assert self.leader is not None
        if not self._members[self.leader].waits_to_join:
            present = (member.member_id for member in self._members.values() if member.waits_to_join)
            self.leader = next(present, self.leader)
        return self._members[self.leader].waits_to_join

    # pending member ids (KIP-394)

    @property
    def has_pending_members(self) -> bool:
        return bool(self._pending)

    def add_pending(self, member_id: str, *, until: float) -> None:
        self._pending[member_id] = until

    def is_pending_member(self, member_id: str) -> bool:
        return member_id in self._pending

    def remove_pending(self, member_id: str) -> None:
        self._pending.pop(member_id, None)

    def expired_pending(self, now: float) -> list[str]:
        """Pending ids whose deadline has passed."""
        return [member_id for member_id, deadline in self._pending.items() if deadline <= now]
