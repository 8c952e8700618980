"""Computes the target assignment of a consumer group (KIP-848). Pure.

For large groups it runs in a thread. A thread releases the interpreter's lock only between bytecodes, so no single call
here is over all names of all members.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from ottla.group.consumer.assignors import Assignor, Candidate, by_range
from ottla.group.consumer.member import Member, Partitions
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    ResolvedRegex,
    encode,
)
from ottla.group.consumer.state import preferred_assignor, topics_of
from ottla.group.consumer.topics import facts_of, ids_of
from ottla.group.consumer.uniform_assignor import uniformly
from ottla.group.heartbeats.targets import Kinds, TargetInput, TargetResult, computed
from ottla.metadata.model.image import Image

__all__ = ["ASSIGNORS", "KINDS", "compute", "new_targets", "subscribed_names"]

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": uniformly, "range": by_range})
KINDS = Kinds(GROUP_EPOCH, TARGET_EPOCH, MEMBER, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT)


def compute(standing: TargetInput, regexes: Mapping[str, ResolvedRegex], default_assignor: str) -> TargetResult:
    """Runs in a thread."""
    members, image = standing.members, standing.image
    names = subscribed_names(members, regexes)
    assign = partial(new_targets, standing.targets, members, regexes, image, default_assignor)
    return computed(standing, names, assign, kinds=KINDS, encode=encode)


def subscribed_names(members: Mapping[str, Member], regexes: Mapping[str, ResolvedRegex]) -> set[str]:
    """All topics that any member subscribes to."""
    names = set[str]()
    for each in members.values():
        names |= each.subscription.topics
    for regex in {each.subscription.regex for each in members.values()}:
        resolved = regexes.get(regex) if regex else None
        if resolved is not None:
            names |= resolved.topics
    return names


def new_targets(
    targets: Mapping[str, Partitions],
    members: Mapping[str, Member],
    regexes: Mapping[str, ResolvedRegex],
    image: Image,
    default_assignor: str,
) -> dict[str, Partitions]:
    """`targets` are the current ones, for a returned static member also under its old id."""
    names = subscribed_names(members, regexes)
    ids = ids_of(image, names)
    # Most members have the same subscription: resolve each set of names once.
    sets: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}
    candidates = []
    for each, member in members.items():
        subscription = member.subscription
        wanted = (subscription.topics, subscription.regex)
        if wanted not in sets:
            sets[wanted] = frozenset(ids[name] for name in topics_of(subscription, regexes) if name in ids)
        candidates.append(
            Candidate(
                id=each,
                topics=sets[wanted],
                target=targets.get(each, frozenset()),
                instance_id=subscription.instance_id,
                rack=subscription.rack_id,
            )
        )
    with_racks = any(candidate.rack is not None for candidate in candidates)
    assignor = ASSIGNORS[preferred_assignor(members.values()) or default_assignor]
    return assignor(candidates, facts_of(image, names, with_racks=with_racks))
