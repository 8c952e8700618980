"""Preferred leader elections. Pure. The preferred leader is a partition's first replica."""

from collections import defaultdict

from ottla.metadata.decisions.commands import Context, ElectionType, ElectLeaders, PartitionRef
from ottla.metadata.decisions.topic_rules import allows_unclean_election
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import NO_LEADER, PartitionState

__all__ = ["preferred_due", "unclean_due"]

ELECTIONS_PER_ROUND_MAX = 1_000


def preferred_due(image: Image, *, imbalance_percent_max: int = 0) -> ElectLeaders | None:
    """The election of preferred leaders that do not lead, or None.

    Only for brokers that lack more than `imbalance_percent_max` of their preferred partitions. 0 as in Kafka 4.
    """
    should_lead: dict[int, int] = defaultdict(int)
    missing: dict[int, list[PartitionRef]] = defaultdict(list)
    for topic in image.topics.values():
        for state in topic.partitions:
            should_lead[state.replicas[0]] += 1
            if _is_elsewhere(image, state):
                missing[state.replicas[0]].append((topic.name, state.index))
    due = [
        ref
        for broker, refs in missing.items()
        if len(refs) * 100 > imbalance_percent_max * should_lead[broker]
        for ref in refs
    ]
    return ElectLeaders(ElectionType.PREFERRED, due[:ELECTIONS_PER_ROUND_MAX]) if due else None


def _is_elsewhere(image: Image, state: PartitionState) -> bool:
    preferred = state.replicas[0]
    return state.leader not in (NO_LEADER, preferred) and preferred in state.isr and image.is_active(preferred)


def unclean_due(image: Image, context: Context) -> ElectLeaders | None:
    """Unclean elections: for partitions without a leader, if their topic allows it and a replica is available."""
    due = [
        (topic.name, state.index)
        for topic in image.topics.values()
        for state in topic.partitions
        if state.leader == NO_LEADER
        and any(map(image.is_active, state.replicas))
        and allows_unclean_election(image, topic.name, context)
    ]
    return ElectLeaders(ElectionType.UNCLEAN, due[:ELECTIONS_PER_ROUND_MAX]) if due else None
