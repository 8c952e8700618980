"""Server-side assignors of consumer groups (KIP-848): which member gets which partition. Pure.

`range` gives each subscriber of a topic one contiguous range of its partitions, the same range in every topic with the
same number of partitions. `uniform` balances all partitions and moves as few as possible (see `uniform_assignor`).
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ottla.group.consumer.member import Partitions

__all__ = ["Assignor", "Candidate", "TopicFacts", "by_range"]


class TopicFacts(msgspec.Struct, frozen=True):
    """`racks`: for each partition, the racks of its replicas; empty when no member has a rack or brokers have none."""

    partitions: int
    racks: Sequence[frozenset[str]] = ()


class Candidate(msgspec.Struct, frozen=True):
    """A member as an assignor sees it: the ids of existing topics it subscribes to, and its current target."""

    id: str
    topics: frozenset[bytes]
    target: Partitions = frozenset()
    instance_id: str | None = None
    rack: str | None = None


Topics = Mapping[bytes, TopicFacts]
Assignor = Callable[[Sequence[Candidate], Topics], dict[str, Partitions]]


def by_range(members: Sequence[Candidate], topics: Topics) -> dict[str, Partitions]:
    """Static members come first, ordered by instance id, so that a restart moves nothing."""
    ordered = sorted(members, key=lambda each: (each.instance_id is None, each.instance_id or each.id))
    assigned: dict[str, set[tuple[bytes, int]]] = {member.id: set() for member in members}
    for topic_id, facts in topics.items():
        subscribers = [member.id for member in ordered if topic_id in member.topics]
        for member_id, run in zip(subscribers, _runs(facts.partitions, len(subscribers)), strict=False):
            assigned[member_id].update((topic_id, index) for index in run)
    return {member_id: frozenset(partitions) for member_id, partitions in assigned.items()}


def _runs(partitions: int, members: int) -> list[range]:
    """The partitions as contiguous ranges, the longer ones first; members without a partition are omitted."""
    if not members:
        return []
    size, longer = divmod(partitions, members)
    served = members if size else longer
    starts = [size * at + min(at, longer) for at in range(served + 1)]
    return [range(starts[at], starts[at + 1]) for at in range(served)]
