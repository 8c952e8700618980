"""The replica that a consumer should read from: one in its own rack that has the offset, if possible (KIP-392).

As Kafka's RackAwareReplicaSelector: the leader if it is in the consumer's rack, else the most advanced in-sync follower
there.
"""

from ottla.metadata.model.image import Image
from ottla.replica.core.isr import FollowerView
from ottla.replica.partition import Partition

__all__ = ["LEADER", "RACK_AWARE", "nearest"]

RACK_AWARE = "RackAwareReplicaSelector"
LEADER = -1


def nearest(partition: Partition, *, offset: int, rack: str, image: Image) -> int:
    """The follower's id, or LEADER."""
    view = partition.view
    if view is None or _rack(image, partition.leader_id) == rack:
        return LEADER
    near = [
        follower
        for follower in view.followers_in_sync
        if follower.start <= offset <= follower.end and _rack(image, follower.id) == rack
    ]
    return max(near, key=_progress).id if near else LEADER


def _progress(follower: FollowerView) -> tuple[int, float, int]:
    return follower.end, follower.caught_up_at, follower.id


def _rack(image: Image, broker_id: int) -> str | None:
    broker = image.brokers.get(broker_id)
    return broker.rack if broker is not None and not broker.fenced else None
