"""What a change of one member means for its group (KIP-848): epoch, target assignment, the member's next step. Pure.

Nothing is changed here: the answer is the entries to write, and how the member stands when they are in force.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import msgspec

from ottla.group.consumer.assignors import Assignor, Candidate, by_range
from ottla.group.consumer.member import Member, Partitions, Subscription, reconciled
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    Entry,
    GroupEpoch,
    ResolvedRegex,
)
from ottla.group.consumer.state import GroupState, preferred_assignor, topics_of
from ottla.group.consumer.topic_matching import TopicMatching, refreshed_regexes
from ottla.group.consumer.topics import facts_of, ids_of, metadata_hash
from ottla.group.consumer.uniform_assignor import uniformly
from ottla.group.heartbeats.epochs import Advance, Seen, next_epoch, target_entries
from ottla.metadata.model.image import Image

__all__ = ["ASSIGNORS", "advance", "removal"]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": uniformly, "range": by_range})


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
    """`before`: the member as it is, or as it would be if it were new. `seen`: what the group knows of the topics."""
    key = (state.group_id,)
    member = msgspec.structs.replace(before, subscription=subscription)
    entries = [] if subscription == before.subscription else [Entry(MEMBER, (*key, member.id), subscription)]
    members = _members_after(state, member)
    regexes, regex_entries = refreshed_regexes(state, members.values(), image=image, matching=matching, now_ms=now_ms)
    entries += regex_entries

    changed = state.epoch == 0 or bool(regex_entries) or _asks_for_others(before.subscription, subscription)
    known = state.known
    epoch, epoch_entries = next_epoch(
        GROUP_EPOCH, known, lambda: _names(members.values(), regexes), changed=changed, image=image, seen=seen
    )
    entries += epoch_entries
    if epoch > state.target_epoch:
        targets = _new_targets(state, members, regexes, image, default_assignor)
        entries += target_entries((TARGET_ASSIGNMENT, TARGET_EPOCH), known, targets, epoch)
        target_epoch, target = epoch, targets[member.id]
    else:
        target_epoch = state.target_epoch
        target = state.target_of(member.id, subscription.instance_id)
    if not member.is_reconciled_to(target_epoch):
        before_step, taken = member.position, state.owners
        position = reconciled(before_step, target_epoch=target_epoch, target=target, taken=taken, owned=owned)
        member = msgspec.structs.replace(member, position=position)
        if position != before_step:
            entries.append(Entry(CURRENT_ASSIGNMENT, (*key, member.id), position))
    return Advance(member, entries)


def _members_after(state: GroupState, member: Member) -> dict[str, Member]:
    """A static member under a new id takes the old one's place."""
    instance_id = member.subscription.instance_id
    replaced = state.static_members.get(instance_id) if instance_id is not None else None
    members = {each: known for each, known in state.members.items() if each != replaced or each == member.id}
    members[member.id] = member
    return members


def _names(members: Iterable[Member], regexes: Mapping[str, ResolvedRegex]) -> frozenset[str]:
    """All topics that anybody asks for."""
    return frozenset[str]().union(*(topics_of(each.subscription, regexes) for each in members))


def _asks_for_others(before: Subscription, after: Subscription) -> bool:
    return before.topics != after.topics or (before.regex or "") != (after.regex or "")


def _new_targets(
    state: GroupState,
    members: Mapping[str, Member],
    regexes: Mapping[str, ResolvedRegex],
    image: Image,
    default_assignor: str,
) -> dict[str, Partitions]:
    subscribed = {each: topics_of(member.subscription, regexes) for each, member in members.items()}
    names = frozenset[str]().union(*subscribed.values())
    ids = ids_of(image, names)
    # Members mostly subscribe to the same: one set of ids for each set of names.
    sets: dict[frozenset[str], frozenset[bytes]] = {}
    for wanted in subscribed.values():
        if wanted not in sets:
            sets[wanted] = frozenset(ids[name] for name in wanted if name in ids)
    candidates = [
        Candidate(
            id=each,
            topics=sets[subscribed[each]],
            target=state.targets.get(each) or state.target_of(each, member.subscription.instance_id),
            instance_id=member.subscription.instance_id,
            rack=member.subscription.rack_id,
        )
        for each, member in members.items()
    ]
    with_racks = any(candidate.rack is not None for candidate in candidates)
    assignor = ASSIGNORS[preferred_assignor(members.values()) or default_assignor]
    return assignor(candidates, facts_of(image, names, with_racks=with_racks))


def removal(
    state: GroupState, leaving: Sequence[Member], *, image: Image, matching: TopicMatching, now_ms: int
) -> list[Entry]:
    """Members go, and the group's epoch rises; whoever comes next computes the new target."""
    group_id = state.group_id
    entries: list[Entry] = []
    for member in leaving:
        key = (group_id, member.id)
        entries += [Entry(kind, key, None) for kind in (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT, MEMBER)]
    gone = {member.id for member in leaving}
    staying = [member for member in state.members.values() if member.id not in gone]
    regexes, regex_entries = refreshed_regexes(state, staying, image=image, matching=matching, now_ms=now_ms)
    fingerprint = metadata_hash(image, _names(staying, regexes))
    return [*entries, *regex_entries, Entry(GROUP_EPOCH, (group_id,), GroupEpoch(state.epoch + 1, fingerprint))]
