"""The consequences of one member's change for its share group (KIP-932): group epoch, target assignment. Pure.

Nothing is changed here: the result is the entries to write, and the member as it is once they are applied.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ottla.group.consumer.assignors import Candidate, TopicFacts
from ottla.group.consumer.member import Member, MemberState, Partitions, Subscription
from ottla.group.consumer.topics import ids_of, metadata_hash
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.group.heartbeats.epochs import Advance, Removal, Seen, next_epoch, target_entries
from ottla.group.heartbeats.targets import (
    Kinds,
    TargetInput,
    TargetResult,
    computed,
    deferred,
    is_large,
    target_epoch_of,
)
from ottla.group.share.assignor import simply
from ottla.group.share.initialization import assignable
from ottla.group.share.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    StatePartitions,
    encode,
)
from ottla.group.share.state import ShareGroupState
from ottla.metadata.model.image import Image

__all__ = ["KINDS", "advance", "compute", "removal"]

KINDS = Kinds(GROUP_EPOCH, TARGET_EPOCH, MEMBER, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT)


def advance(state: ShareGroupState, before: Member, subscription: Subscription, *, image: Image, seen: Seen) -> Advance:
    """`before`: the member as it is, or a new one. `seen`: the metadata that the group examined last."""
    member = msgspec.structs.replace(before, subscription=subscription)
    key = (state.group_id, member.id)
    entries = [] if subscription == before.subscription else [Entry(MEMBER, key, subscription)]
    target_epoch, target = state.target_epoch, state.targets.get(member.id, frozenset())
    examined, in_thread = None, False
    changed = state.epoch == 0 or before.subscription.topics != subscription.topics
    if changed or not seen.is_current(image, state.states) or state.epoch > target_epoch:
        members = {**state.members, member.id: member}
        in_thread = is_large(_subscribed(members.values()), image)
        if in_thread:
            entries += deferred(KINDS, state.known, target_epoch=target_epoch, changed=changed)
            target_epoch = target_epoch_of(target_epoch)
        else:
            examined = Seen(image, state.states)
            epoch, targets, news = _inline(state, members, changed=changed, image=image, seen=seen)
            entries += news
            if targets is not None:
                target_epoch, target = epoch, targets[member.id]
    if not member.is_reconciled_to(target_epoch):
        stands = MemberState.STABLE
        position = member.position.moved(epoch=target_epoch, state=stands, assigned=target, revoking=frozenset())
        member = msgspec.structs.replace(member, position=position)
        entries.append(Entry(CURRENT_ASSIGNMENT, key, position))
    return Advance(member, entries, examined, in_thread)


def _inline(
    state: ShareGroupState, members: Mapping[str, Member], *, changed: bool, image: Image, seen: Seen
) -> tuple[int, dict[str, Partitions] | None, list[Entry]]:
    """The epoch, the new targets if any, and the entries to write."""
    names, known = _names(members), state.known
    can_have = assignable(state.states, names, image)
    news = bool(state.members) and _differs(state.targets, can_have)
    epoch, entries = next_epoch(GROUP_EPOCH, known, lambda: names, changed=changed or news, image=image, seen=seen)
    if epoch <= state.target_epoch:
        return epoch, None, entries
    targets = _new_targets(state.targets, members, can_have, image)
    return epoch, targets, entries + target_entries((TARGET_ASSIGNMENT, TARGET_EPOCH), known, targets, epoch)


def compute(standing: TargetInput, states: StatePartitions) -> TargetResult:
    """Runs in a thread; see `heartbeats.targets`."""
    members, image = standing.members, standing.image
    names = _names(members)
    can_have = assignable(states, names, image)
    return computed(
        standing,
        names,
        lambda: _new_targets(standing.targets, members, can_have, image),
        kinds=KINDS,
        encode=encode,
        has_news=_differs(standing.targets, can_have),
    )


def _subscribed(members: Iterable[Member]) -> Iterable[Sequence[frozenset[str]]]:
    return ((each.subscription.topics,) for each in members)


def _names(members: Mapping[str, Member]) -> set[str]:
    names = set[str]()
    for each in members.values():
        names |= each.subscription.topics
    return names


def _differs(targets: Mapping[str, Partitions], can_have: Mapping[bytes, int]) -> bool:
    """Whether partitions were initialized or deleted since the targets were computed."""
    assigned = set[tuple[bytes, int]]()
    for target in targets.values():
        assigned |= target
    possible = sum(can_have.values())
    return len(assigned) != possible or any(index >= can_have.get(topic_id, 0) for topic_id, index in assigned)


def _new_targets(
    targets: Mapping[str, Partitions], members: Mapping[str, Member], can_have: Mapping[bytes, int], image: Image
) -> dict[str, Partitions]:
    ids = ids_of(image, _names(members))
    facts = {topic_id: TopicFacts(count) for topic_id, count in can_have.items()}
    sets: dict[frozenset[str], frozenset[bytes]] = {}
    candidates = []
    for each, member in members.items():
        wanted = member.subscription.topics
        if wanted not in sets:
            sets[wanted] = frozenset(ids[name] for name in wanted if name in ids)
        candidates.append(Candidate(id=each, topics=sets[wanted], target=targets.get(each, frozenset())))
    return simply(candidates, facts)


def removal(state: ShareGroupState, leaving: Sequence[Member], *, image: Image) -> Removal:
    """Remove members and raise the group's epoch. The next heartbeat computes the new target, or a thread does."""
    gone = {member.id for member in leaving}
    kinds = (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT, MEMBER)
    entries = [Entry(kind, (state.group_id, each), None) for each in gone for kind in kinds]
    staying = {each: member for each, member in state.members.items() if each not in gone}
    in_thread = is_large(_subscribed(staying.values()), image)
    fingerprint = state.metadata_hash if in_thread else metadata_hash(image, _names(staying))
    entries.append(Entry(GROUP_EPOCH, (state.group_id,), GroupEpoch(state.epoch + 1, fingerprint)))
    return Removal(entries, None if in_thread else Seen(image, state.states), in_thread)
