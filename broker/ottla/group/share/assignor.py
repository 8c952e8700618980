"""The `simple` assignor of share groups: every partition has a member, and every member a partition. Pure.

With at least as many partitions as members, it assigns as `uniform` does: balanced, with few moves. With more members
than partitions, members share: each keeps its partition unless that has too many members, otherwise it gets the
partition with the fewest.
"""

from collections import Counter
from collections.abc import Sequence

from ottla.group.consumer.assignors import Candidate, Topics
from ottla.group.consumer.member import Partition, Partitions
from ottla.group.consumer.uniform_assignor import uniformly

__all__ = ["simply"]


def simply(members: Sequence[Candidate], topics: Topics) -> dict[str, Partitions]:
    ordered = sorted(members, key=lambda each: each.id)
    assigned = uniformly(ordered, topics)
    partitions = sum(facts.partitions for facts in topics.values())
    if not partitions:
        return assigned
    crowd = Counter(partition for held in assigned.values() for partition in held)
    crowd_max = -(-len(members) // partitions)
    idle = [member for member in ordered if not assigned[member.id]]
    homeless = []
    for member in idle:
        kept = _kept(member, topics, crowd, crowd_max)
        if kept is None:
            homeless.append(member)
        else:
            assigned[member.id] = frozenset({kept})
            crowd[kept] += 1
    for member in homeless:
        if options := _options(member, topics):
            chosen = min(options, key=lambda each: (crowd[each], each))
            assigned[member.id] = frozenset({chosen})
            crowd[chosen] += 1
    return assigned


def _kept(member: Candidate, topics: Topics, crowd: Counter[Partition], crowd_max: int) -> Partition | None:
    """One of its current partitions that does not have too many members."""
    return next(
        (each for each in sorted(member.target) if _may_have(member, each, topics) and crowd[each] < crowd_max), None
    )


def _may_have(member: Candidate, partition: Partition, topics: Topics) -> bool:
    topic_id, index = partition
    return topic_id in member.topics and topic_id in topics and index < topics[topic_id].partitions


def _options(member: Candidate, topics: Topics) -> list[Partition]:
    return [(each, index) for each in member.topics if each in topics for index in range(topics[each].partitions)]
