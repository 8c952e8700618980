"""The state of a fleet in Metadata answers, asked of every broker that may answer."""

from collections.abc import Iterable
from dataclasses import dataclass

from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v9.response import MetadataResponse
from support.process import BrokerProcess

ANSWER_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class PartitionView:
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]

    @property
    def whole(self) -> bool:
        return self.leader >= 0 and set(self.in_sync) == set(self.replicas)


@dataclass(frozen=True)
class View:
    """One broker's answer. `brokers` are the ids it believes alive."""

    brokers: frozenset[int]
    partitions: dict[tuple[str, int], PartitionView]


def view_of(broker: BrokerProcess, topics: Iterable[str] | None = None) -> View | None:
    """None when it does not answer in time."""
    wanted = None if topics is None else tuple(MetadataRequestTopic(name=topic) for topic in topics)
    request = MetadataRequest(
        topics=wanted,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    try:
        with broker.connect(ANSWER_TIMEOUT_S) as connection:
            return _understood(connection.ask(request, MetadataResponse))
    except OSError:
        return None


def _understood(answer: MetadataResponse) -> View:
    partitions = {
        (str(topic.name), int(p.partition_index)): PartitionView(
            leader=int(p.leader_id),
            leader_epoch=int(p.leader_epoch),
            replicas=tuple(map(int, p.replica_nodes)),
            in_sync=tuple(map(int, p.isr_nodes)),
        )
        for topic in answer.topics
        for p in topic.partitions
    }
    return View(frozenset(int(broker.node_id) for broker in answer.brokers), partitions)


def newest(views: Iterable[View], topic: str, partition: int) -> PartitionView | None:
    """Of differing answers the one of the highest leader epoch: a broker that is cut off answers with old ones."""
    known = [view.partitions[topic, partition] for view in views if (topic, partition) in view.partitions]
    return max(known, key=lambda one: one.leader_epoch, default=None)
