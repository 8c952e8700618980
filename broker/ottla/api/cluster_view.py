"""The image as clients see it on one listener: endpoints of brokers, and partitions with offline replicas."""

from dataclasses import dataclass, field

from ottla.errors import Code
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState, Topic
from ottla.wire.metadata_response import BrokerEndpoint, PartitionLine, encode_partitions

__all__ = ["ClusterView", "PartitionCache", "brokers_on", "partition_line"]

SIZE_MIN = 64  # entries: below that nobody looks for those of deleted topics


def brokers_on(image: Image, listener: str, *, fenced: bool = False) -> list[BrokerEndpoint]:
    """The endpoints of live brokers (with `fenced`: of all) on the listener that the client is connected to."""
    found = []
    for broker in image.brokers.values():
        if broker.fenced and not fenced:
            continue
        found += [
            BrokerEndpoint(broker.id, x.host, x.port, broker.rack) for x in broker.listeners if x.name == listener
        ]
    return found


def partition_line(image: Image, state: PartitionState, *, leader_must_listen: frozenset[int]) -> PartitionLine:
    lost = state.lost
    offline = [replica for replica in state.replicas if replica not in leader_must_listen or replica in lost]
    error = Code.none
    if state.leader not in image.brokers:
        error = Code.leader_not_available
    elif state.leader not in leader_must_listen:
        error = Code.listener_not_found
    leader = state.leader if error == Code.none else -1
    return PartitionLine(error, state.index, leader, state.leader_epoch, state.replicas, state.isr, offline)


class PartitionCache:
    """Encoded partition arrays per topic and layout, good for as long as topic and brokers are the same objects.

    Those of deleted topics go when there are twice as many as were left the last time.
    """

    def __init__(self) -> None:
        self._brokers: object = None
        self._next_size = SIZE_MIN
        self._encoded: dict[tuple[str, int, str], tuple[Topic, bytes]] = {}

    def encoded(self, image: Image, topic: Topic, version: int, listener: str) -> bytes:
        if self._brokers is not image.brokers:
            self._brokers = image.brokers
            self._encoded.clear()
        key = (topic.name, layout(version), listener)
        cached = self._encoded.get(key)
        if cached is not None and cached[0] is topic:
            return cached[1]
        live = frozenset(broker.id for broker in brokers_on(image, listener))
        lines = [partition_line(image, state, leader_must_listen=live) for state in topic.partitions]
        data = encode_partitions(version, lines)
        if len(self._encoded) >= self._next_size:
            self._forget_deleted(image)
        self._encoded[key] = (topic, data)
        return data

    def __len__(self) -> int:
        return len(self._encoded)

    def _forget_deleted(self, image: Image) -> None:
        self._encoded = {key: value for key, value in self._encoded.items() if key[0] in image.topics}
        self._next_size = max(SIZE_MIN, 2 * len(self._encoded))


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What clients get about the cluster that is not in the image."""

    cluster_id: str
    controller_id: int
    """The controller id for clients: this broker, because every broker forwards controller requests."""
    partitions: PartitionCache = field(default_factory=PartitionCache)


def layout(version: int) -> int:
    """The first version whose partitions are the same as this version's."""
    return next(first for first in (9, 7, 5, 0) if version >= first)
