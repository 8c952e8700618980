"""What a change of one member means for its share group (KIP-932): epoch, target assignment, the member's step. Pure.

Nothing is changed here: the answer is the entries to write, and how the member stands when they are in force.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ottla.group.consumer.assignors import Candidate, TopicFacts
from ottla.group.consumer.member import Member, MemberState, Partitions, Subscription
from ottla.group.consumer.topics import ids_of, metadata_hash
from ottla.group.heartbeats.entries import Entry, GroupEpoch
from ottla.group.heartbeats.epochs import Advance, Seen, next_epoch, target_entries
from ottla.group.share.assignor import simply
from ottla.group.share.records import CURRENT_ASSIGNMENT, GROUP_EPOCH, MEMBER, TARGET_ASSIGNMENT, TARGET_EPOCH
from ottla.group.share.state import ShareGroupState
from ottla.group.share.states import assignable
from ottla.metadata.model.image import Image

__all__ = ["advance", "removal"]


def advance(state: ShareGroupState, before: Member, subscription: Subscription, *, image: Image, seen: Seen) -> Advance:
    """`before`: the member as it is, or as it would be if it were new. `seen`: what the group knows of the topics."""
    member = msgspec.structs.replace(before, subscription=subscription)
    key = (state.group_id, member.id)
    entries = [] if subscription == before.subscription else [Entry(MEMBER, key, subscription)]
    members = {**state.members, member.id: member}
    names = _names(members)
    can_have = assignable(state.states, names, image)

    changed = before.subscription.topics != subscription.topics or _has_news(state, can_have)
    known = state.known
    epoch, epoch_entries = next_epoch(GROUP_EPOCH, known, lambda: names, changed=changed, image=image, seen=seen)
    entries += epoch_entries
    target_epoch, target = state.target_epoch, state.targets.get(member.id, frozenset())
    if epoch > state.target_epoch:
        targets = _new_targets(state, members, can_have, image)
        entries += target_entries((TARGET_ASSIGNMENT, TARGET_EPOCH), known, targets, epoch)
        target_epoch, target = epoch, targets[member.id]
    if not member.is_reconciled_to(target_epoch):
        stands = MemberState.STABLE
        position = member.position.moved(epoch=target_epoch, state=stands, assigned=target, revoking=frozenset())
        member = msgspec.structs.replace(member, position=position)
        entries.append(Entry(CURRENT_ASSIGNMENT, key, position))
    return Advance(member, entries)


def _names(members: Mapping[str, Member]) -> frozenset[str]:
    return frozenset[str]().union(*(member.subscription.topics for member in members.values()))


def _has_news(state: ShareGroupState, can_have: Mapping[bytes, int]) -> bool:
    """Whether partitions have got their states since the target was made, or lost them."""
    if not state.members:
        return False
    assigned = frozenset[tuple[bytes, int]]().union(*state.targets.values())
    return assigned != {(topic_id, index) for topic_id, count in can_have.items() for index in range(count)}


def _new_targets(
    state: ShareGroupState, members: Mapping[str, Member], can_have: Mapping[bytes, int], image: Image
) -> dict[str, Partitions]:
    ids = ids_of(image, _names(members))
    facts = {topic_id: TopicFacts(count) for topic_id, count in can_have.items()}
    candidates = [
        Candidate(
            id=each,
            topics=frozenset(ids[name] for name in member.subscription.topics if name in ids),
            target=state.targets.get(each, frozenset()),
        )
        for each, member in members.items()
    ]
    return simply(candidates, facts)


def removal(state: ShareGroupState, leaving: Sequence[Member], *, image: Image) -> list[Entry]:
    """Members go, and the group's epoch rises; whoever comes next computes the new target."""
    gone = {member.id for member in leaving}
    kinds = (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT, MEMBER)
    entries = [Entry(kind, (state.group_id, each), None) for each in gone for kind in kinds]
    staying = {each: member for each, member in state.members.items() if each not in gone}
    fingerprint = metadata_hash(image, _names(staying))
    return [*entries, Entry(GROUP_EPOCH, (state.group_id,), GroupEpoch(state.epoch + 1, fingerprint))]
