"""Static members of consumer groups: who an instance is, and who takes its place. Pure."""

import msgspec

from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Member
from ottla.group.consumer.records import CURRENT_ASSIGNMENT, MEMBER, TARGET_ASSIGNMENT, Entry
from ottla.group.consumer.state import NOTHING, GroupState

__all__ = ["known_instance", "static_successor"]


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
    """What the old one has, under a new id and from epoch 0."""
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
