"""The fleet's health in numbers, as in the views of kafka-topics. Pure."""

from collections.abc import Callable

import msgspec

from ottla.metadata.model.image import Image
from ottla.metadata.model.state import NO_LEADER

__all__ = ["Health", "fleet_health"]


class Health(msgspec.Struct, frozen=True):
    """Numbers of partitions; the last one is of brokers."""

    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    offline: int = 0
    reassigning: int = 0
    without_preferred_leader: int = 0
    brokers_fenced: int = 0


def fleet_health(image: Image, isr_size_min_of: Callable[[str], int]) -> Health:
    """Replicas that a reassignment is adding do not count as out of sync."""
    under_replicated = under_min = at_min = offline = reassigning = elsewhere = 0
    for topic in image.topics.values():
        wanted = isr_size_min_of(topic.name)
        for state in topic.partitions:
            in_sync = len(state.isr)
            expected = set(state.replicas) - set(state.adding)
            needed = min(wanted, len(state.replicas))
            under_replicated += not expected <= set(state.isr)
            under_min += in_sync < needed
            at_min += in_sync == needed
            offline += state.leader == NO_LEADER
            reassigning += bool(state.adding or state.removing)
            elsewhere += state.leader != state.replicas[0]
    return Health(
        under_replicated=under_replicated,
        under_min_isr=under_min,
        at_min_isr=at_min,
        offline=offline,
        reassigning=reassigning,
        without_preferred_leader=elsewhere,
        brokers_fenced=sum(broker.fenced for broker in image.brokers.values()),
    )
