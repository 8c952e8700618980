"""The consequences of one member's change (KIP-848): group epoch, target assignment, the member's next step. Pure.

Nothing is changed here: the result is the entries to write, and the member as it is once they are applied.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from ottla.group.consumer.member import Member, Partitions, Subscription, reconciled
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    TARGET_ASSIGNMENT,
    Entry,
    GroupEpoch,
    ResolvedRegex,
)
from ottla.group.consumer.state import GroupState
from ottla.group.consumer.targets import KINDS, new_targets, subscribed_names
from ottla.group.consumer.topic_matching import TopicMatching, refreshed_regexes
from ottla.group.consumer.topics import metadata_hash
from ottla.group.heartbeats.epochs import Advance, Removal, Seen, next_epoch, target_entries
from ottla.group.heartbeats.targets import deferred, is_large, target_epoch_of
from ottla.metadata.model.image import Image

__all__ = ["advance", "removal"]

Regexes = Mapping[str, ResolvedRegex]


class Target(NamedTuple):
    """A member's target assignment, and the entries that record it. `examined` and `in_thread` as in `Advance`."""

    epoch: int
    partitions: Partitions
    entries: Sequence[Entry] = ()
    examined: Seen | None = None
    in_thread: bool = False


def advance(
    state: GroupState,
    before: Member,
    subscription: Subscription,
    *,
    owned: Partitions | None,
    image: Image,
    seen: Seen,
    matching: TopicMatching,
    default_assignor: str,
    now_ms: int,
) -> Advance:
    """`before`: the member as it is, or a new one. `seen`: the metadata that the group examined last."""
    key = (state.group_id,)
    member = msgspec.structs.replace(before, subscription=subscription)
    entries = [] if subscription == before.subscription else [Entry(MEMBER, (*key, member.id), subscription)]
    members = _members_after(state, member)
    regexes, regex_entries = refreshed_regexes(state, members.values(), image=image, matching=matching, now_ms=now_ms)
    entries += regex_entries

    changed = state.epoch == 0 or bool(regex_entries) or _changes_topics(before.subscription, subscription)
    if not changed and seen.is_current(image) and state.epoch <= state.target_epoch:
        target = Target(state.target_epoch, state.target_of(member.id, subscription.instance_id))
    elif is_large(_subscribed(members.values(), regexes), image):
        target = _leave_to_thread(state, member, changed=changed)
    else:
        target = _inline(state, member, members, regexes, image, seen, default_assignor, changed=changed)
    entries += target.entries
    if not member.is_reconciled_to(target.epoch):
        before_step, taken = member.position, state.owners
        position = reconciled(
            before_step, target_epoch=target.epoch, target=target.partitions, taken=taken, owned=owned
        )
        member = msgspec.structs.replace(member, position=position)
        if position != before_step:
            entries.append(Entry(CURRENT_ASSIGNMENT, (*key, member.id), position))
    return Advance(member, entries, target.examined, target.in_thread)


def _inline(
    state: GroupState,
    member: Member,
    members: Mapping[str, Member],
    regexes: Regexes,
    image: Image,
    seen: Seen,
    default_assignor: str,
    *,
    changed: bool,
) -> Target:
    known = state.known
    epoch, entries = next_epoch(
        GROUP_EPOCH, known, lambda: subscribed_names(members, regexes), changed=changed, image=image, seen=seen
    )
    if epoch <= state.target_epoch:
        partitions = state.target_of(member.id, member.subscription.instance_id)
        return Target(state.target_epoch, partitions, entries, Seen(image))
    so_far = {
        each: state.targets.get(each) or state.target_of(each, one.subscription.instance_id)
        for each, one in members.items()
    }
    targets = new_targets(so_far, members, regexes, image, default_assignor)
    entries += target_entries((KINDS.target, KINDS.target_epoch), known, targets, epoch)
    return Target(epoch, targets[member.id], entries, Seen(image))


def _leave_to_thread(state: GroupState, member: Member, *, changed: bool) -> Target:
    """The old target stays until a thread has computed the new one."""
    entries = deferred(KINDS, state.known, target_epoch=state.target_epoch, changed=changed)
    partitions = state.target_of(member.id, member.subscription.instance_id)
    return Target(target_epoch_of(state.target_epoch), partitions, entries, in_thread=True)


def _subscribed(members: Iterable[Member], regexes: Regexes) -> Iterable[Sequence[frozenset[str]]]:
    for each in members:
        subscription = each.subscription
        resolved = regexes.get(subscription.regex) if subscription.regex else None
        yield (subscription.topics,) if resolved is None else (subscription.topics, resolved.topics)


def _members_after(state: GroupState, member: Member) -> dict[str, Member]:
    """The members with this one; a static member with a new id replaces the old one."""
    instance_id = member.subscription.instance_id
    replaced = state.static_members.get(instance_id) if instance_id is not None else None
    members = {each: known for each, known in state.members.items() if each != replaced or each == member.id}
    members[member.id] = member
    return members


def _changes_topics(before: Subscription, after: Subscription) -> bool:
    return before.topics != after.topics or (before.regex or "") != (after.regex or "")


def removal(
    state: GroupState, leaving: Sequence[Member], *, image: Image, matching: TopicMatching, now_ms: int
) -> Removal:
    """Remove members and raise the group's epoch. The next heartbeat computes the new target, or a thread does."""
    group_id = state.group_id
    entries: list[Entry] = []
    for member in leaving:
        key = (group_id, member.id)
        entries += [Entry(kind, key, None) for kind in (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT, MEMBER)]
    gone = {member.id for member in leaving}
    staying = {each: member for each, member in state.members.items() if each not in gone}
    regexes, regex_entries = refreshed_regexes(state, staying.values(), image=image, matching=matching, now_ms=now_ms)
    entries += regex_entries
    in_thread = is_large(_subscribed(staying.values(), regexes), image)
    fingerprint = state.metadata_hash if in_thread else metadata_hash(image, subscribed_names(staying, regexes))
    entries.append(Entry(GROUP_EPOCH, (group_id,), GroupEpoch(state.epoch + 1, fingerprint)))
    return Removal(entries, None if in_thread else Seen(image), in_thread)
