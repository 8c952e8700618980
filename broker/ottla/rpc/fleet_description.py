"""The fleet as its controller sees it, for operators. Pure."""

from collections import Counter
from collections.abc import Callable, Set

from ottla.metadata.decisions.health import fleet_health
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Broker
from ottla.pb import control_pb2 as pb
from ottla.raft.core.quorum_state import QuorumState

__all__ = ["describe_fleet"]


def describe_fleet(
    image: Image,
    quorum: QuorumState,
    *,
    voters_heard: Set[int],
    version_of: Callable[[int], int],
    address_of: Callable[[int], str],
    isr_size_min_of: Callable[[str], int],
) -> pb.DescribeFleetReply:
    """`version_of`: the metadata version that a broker has said to have seen, -1 when it has said nothing."""
    health = fleet_health(image, isr_size_min_of)
    brokers = _brokers(image, quorum, version_of, address_of)
    return pb.DescribeFleetReply(
        cluster_id=image.cluster_id,
        leader=quorum.leader_id,
        leader_epoch=quorum.leader_epoch,
        version=image.version,
        nodes=[*brokers, *_controllers(image, quorum, voters_heard, address_of)],
        topics=len(image.topics),
        partitions=image.partition_count,
        partitions_under_replicated=health.under_replicated,
        partitions_under_min_isr=health.under_min_isr,
        partitions_at_min_isr=health.at_min_isr,
        partitions_offline=health.offline,
        partitions_reassigning=health.reassigning,
        features=image.features,
    )


def _brokers(
    image: Image, quorum: QuorumState, version_of: Callable[[int], int], address_of: Callable[[int], str]
) -> list[pb.Node]:
    """A controller of an earlier version has registered a broker without its control port: the quorum knows better."""
    voters = {voter.id for voter in quorum.voter_endpoints}
    states = [state for topic in image.topics.values() for state in topic.partitions]
    led = Counter(state.leader for state in states)
    held = Counter(replica for state in states for replica in state.replicas)
    return [
        pb.Node(
            id=broker.id,
            roles=["broker", "controller"] if broker.id in voters else ["broker"],
            rack=broker.rack or "",
            fenced=broker.fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            leads_quorum=broker.id == quorum.leader_id,
            address=address_of(broker.id) or broker.control_address,
            epoch=broker.epoch,
            version=image.version if broker.id == quorum.leader_id else version_of(broker.id),
            listeners=_listeners(broker),
            partitions_led=led[broker.id],
            replicas=held[broker.id],
        )
        for broker in sorted(image.brokers.values(), key=lambda broker: broker.id)
    ]


def _listeners(broker: Broker) -> list[pb.Address]:
    return [pb.Address(name=each.name, host=each.host, port=each.port) for each in broker.listeners]


def _controllers(
    image: Image, quorum: QuorumState, voters_heard: Set[int], address_of: Callable[[int], str]
) -> list[pb.Node]:
    """Voters that are not registered as brokers. One that the leader does not hear counts as fenced."""
    return [
        pb.Node(
            id=voter.id,
            roles=["controller"],
            fenced=voter.id not in voters_heard,
            leads_quorum=voter.id == quorum.leader_id,
            address=address_of(voter.id),
            version=voter.log_end_offset - 1,
        )
        for voter in quorum.voters
        if voter.id not in image.brokers
    ]
