"""Who belongs to a classic group. Pure.

Invariants: `leader` is a member unless there are none; every instance id belongs to one member.
"""

from collections.abc import Mapping

from ottla.errors import Code, KafkaError
from ottla.group.classic.member import NEVER, Member

__all__ = ["Roster"]


class Roster:
    """`members`, by id, are in the order in which they came: some assignors depend on it."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self.members: Mapping[str, Member] = self._members  # the same, to be read
        self.leader: str | None = None
        self._instances: dict[str, str] = {}  # instance id → member id
        self._promised: dict[str, float] = {}  # ids given out and not used yet → until when they hold

    # who is there

    def check(self, member_id: str, instance_id: str | None) -> Member:
        """UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another member has taken the instance's place (KIP-345)."""
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
        return not self._promised and all(member.waits_to_join for member in self._members.values())

    @property
    def next_deadline(self) -> float:
        members = min((member.deadline for member in self._members.values()), default=NEVER)
        return min(members, min(self._promised.values(), default=NEVER))

    # coming and going

    def add(self, member: Member) -> None:
        if not self._members:
            self.leader = member.member_id
        self._members[member.member_id] = member
        if member.instance_id is not None:
            self._instances[member.instance_id] = member.member_id
        self._promised.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        member = self._members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            del self._instances[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        self._promised.pop(member_id, None)

    def replace(self, old: Member, new: Member) -> None:
        """A static member under a new id takes the place of the old one, also in the order of members."""
        assert old.instance_id is not None
        assert old.instance_id == new.instance_id
        members = [new if member is old else member for member in self._members.values()]
        self._members.clear()
        self._members.update((member.member_id, member) for member in members)
        self._instances[old.instance_id] = new.member_id
        if self.leader == old.member_id:
            self.leader = new.member_id

    # who leads

    def restore_leader(self, leader: str | None) -> None:
        self.leader = leader if leader in self._members else next(iter(self._members), None)

    def elect_leader(self) -> bool:
        """The leader must be there to assign; if it is not, the first that is there leads. False: nobody has joined."""
        assert self.leader is not None
        if not self._members[self.leader].waits_to_join:
            present = (member.member_id for member in self._members.values() if member.waits_to_join)
            self.leader = next(present, self.leader)
        return self._members[self.leader].waits_to_join

    # ids given out (KIP-394)

    @property
    def awaits_members(self) -> bool:
        return bool(self._promised)

    def promise(self, member_id: str, *, until: float) -> None:
        self._promised[member_id] = until

    def is_promised(self, member_id: str) -> bool:
        return member_id in self._promised

    def withdraw(self, member_id: str) -> None:
        self._promised.pop(member_id, None)

    def unused(self, now: float) -> list[str]:
        """Ids whose time is over."""
        return [member_id for member_id, deadline in self._promised.items() if deadline <= now]
