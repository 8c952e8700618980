"""The state of one consumer group (KIP-848), as its records in the log define it. Pure.

Only `apply` changes it, entry by entry: while a shard loads, and after every append. So state and log cannot differ.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Member, Partition, Partitions, Position, Subscription
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    REGEX,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    ResolvedRegex,
)
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.group.heartbeats.epochs import Known

__all__ = ["NOTHING", "GroupState", "known_instance", "preferred_assignor", "static_successor", "topics_of"]

NOTHING: Partitions = frozenset()


def topics_of(subscription: Subscription, regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """The subscribed names, including those that the regular expression matches."""
    resolved = regexes.get(subscription.regex) if subscription.regex else None
    if resolved is None:
        return subscription.topics
    return subscription.topics | resolved.topics if subscription.topics else resolved.topics


def preferred_assignor(members: Iterable[Member]) -> str | None:
    """The assignor that most members prefer."""
    votes = Counter(member.subscription.assignor for member in members if member.subscription.assignor)
    return max(votes, key=lambda name: votes[name]) if votes else None


class GroupState:
    """`owners` has every partition that some member may own, including those it still has to revoke."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.target_epoch = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.static_members: dict[str, str] = {}
        self.owners: dict[Partition, str] = {}
        self.regexes: dict[str, ResolvedRegex] = {}
        self._name: str | None = None

    @property
    def name(self) -> str:
        """The state's name in ListGroups and the tools."""
        if self._name is None:
            self._name = self._name_now()
        return self._name

    @property
    def known(self) -> Known:
        return Known(self.group_id, self.epoch, self.metadata_hash, self.targets)

    def _name_now(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def target_of(self, member_id: str, instance_id: str | None) -> Partitions:
        """A static member that returns with a new id has its target under the old one."""
        known = member_id if instance_id is None else self.static_members.get(instance_id)
        return self.targets.get(known, NOTHING) if known is not None else NOTHING

    def regex_of(self, member_id: str) -> str | None:
        member = self.members.get(member_id)
        return None if member is None else member.subscription.regex

    def preferred_assignor(self) -> str | None:
        return preferred_assignor(self.members.values())

    @property
    def classic_members(self) -> int:
        return sum(member.uses_classic for member in self.members.values())

    # -- the log

    def apply(self, entry: Entry) -> None:
        self._name = None
        self.APPLY[entry.kind](self, entry.key[-1], entry.value)

    def _group_epoch(self, _: str, value: GroupEpoch | None) -> None:
        if value is not None:
            self.epoch, self.metadata_hash = value.epoch, value.metadata_hash

    def _target_epoch(self, _: str, value: int | None) -> None:
        self.target_epoch = value if value is not None else -1

    def _member(self, member_id: str, value: Subscription | None) -> None:
        old = self.members.get(member_id)
        if value is None:
            if old is not None:
                self._forget(old)
            return
        member = msgspec.structs.replace(old or Member(member_id), subscription=value)
        self.members[member_id] = member
        if value.instance_id is not None:
            self.static_members[value.instance_id] = member_id

    def _forget(self, member: Member) -> None:
        self._release(member)
        del self.members[member.id]
        instance_id = member.subscription.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.id:
            del self.static_members[instance_id]

    def _target_assignment(self, member_id: str, value: Partitions | None) -> None:
        if value is None:
            self.targets.pop(member_id, None)
        else:
            self.targets[member_id] = value

    def _current_assignment(self, member_id: str, value: Position | None) -> None:
        old = self.members.get(member_id)
        if old is None and value is None:
            return
        old = old or Member(member_id)
        self._release(old)
        member = msgspec.structs.replace(old, position=value or Position())
        self.members[member_id] = member
        for partition in member.position.assigned | member.position.revoking:
            self.owners[partition] = member_id

    def _release(self, member: Member) -> None:
        for partition in member.position.assigned | member.position.revoking:
            if self.owners.get(partition) == member.id:
                del self.owners[partition]

    def _regex(self, regex: str, value: ResolvedRegex | None) -> None:
        if value is None:
            self.regexes.pop(regex, None)
        else:
            self.regexes[regex] = value

    APPLY: ClassVar[Mapping[int, Callable[[Any, str, Any], None]]] = {
        GROUP_EPOCH: _group_epoch,
        MEMBER: _member,
        TARGET_EPOCH: _target_epoch,
        TARGET_ASSIGNMENT: _target_assignment,
        CURRENT_ASSIGNMENT: _current_assignment,
        REGEX: _regex,
    }


# -- static members


def known_instance(existing: Member | None, member_id: str, instance_id: str) -> Member:
    if existing is None:
        raise KafkaError(Code.unknown_member_id, f"Instance id {instance_id} is unknown.")
    if existing.id != member_id:
        raise KafkaError(
            Code.fenced_instance_id,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {existing.id}.",
        )
    return existing


def static_successor(log: GroupState, existing: Member, member_id: str) -> tuple[Member, list[Entry]]:
    """The old member with a new id and epoch 0, and the entries that replace it."""
    position = msgspec.structs.replace(existing.position, epoch=0, previous_epoch=0)
    member = Member(member_id, existing.subscription, position)
    key = (log.group_id, member_id)
    kinds = (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT, MEMBER)
    entries = [Entry(kind, (log.group_id, existing.id), None) for kind in kinds]
    entries += [
        Entry(MEMBER, key, member.subscription),
        Entry(TARGET_ASSIGNMENT, key, log.targets.get(existing.id, NOTHING)),
        Entry(CURRENT_ASSIGNMENT, key, position),
    ]
    return member, entries
