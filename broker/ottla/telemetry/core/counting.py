"""What an image says of one broker and of the fleet, in numbers. Pure; an image of many partitions takes a while."""

from dataclasses import dataclass

from ottla.metadata.model.image import Image

__all__ = ["FleetCounts", "PartitionCounts", "count_fleet", "count_partitions"]

NO_LEADER = -1


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Of one broker."""

    hosted: int
    led: int
    under_replicated: int


@dataclass(frozen=True, slots=True)
class FleetCounts:
    offline_partitions: int
    active_brokers: int
    fenced_brokers: int


def count_partitions(image: Image, broker_id: int) -> PartitionCounts:
    hosted = led = under_replicated = 0
    for topic in image.topics.values():
        for state in topic.partitions:
            hosted += broker_id in state.replicas
            if state.leader == broker_id:
                led += 1
                under_replicated += len(state.isr) < len(state.replicas)
    return PartitionCounts(hosted, led, under_replicated)


def count_fleet(image: Image) -> FleetCounts:
    fenced = sum(broker.fenced for broker in image.brokers.values())
    return FleetCounts(
        offline_partitions=sum(
            state.leader == NO_LEADER for topic in image.topics.values() for state in topic.partitions
        ),
        active_brokers=len(image.brokers) - fenced,
        fenced_brokers=fenced,
    )
