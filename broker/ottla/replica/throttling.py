"""Applies the current throttle settings to replicas that are copied from this broker.

The leader enforces both sides' limits, because it sends: one for all throttled replicas together, and one per follower.
So a follower that copies from several leaders may receive its rate from each.
"""

from collections.abc import Callable

from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from ottla.replica.core.throttle import UNLIMITED, TokenBucket, is_throttled
from ottla.replica.partition import Partition
from ottla.replica.settings import FLEET_WIDE, LiveSettings

__all__ = ["Throttles"]

FOLLOWER_RATE = "follower.replication.throttled.rate"


class Throttles:
    def __init__(self, node_id: int, *, settings: LiveSettings, image: Callable[[], Image]) -> None:
        self._node_id = node_id
        self._settings = settings
        self._image = image
        self._sending = TokenBucket(lambda: int(settings.broker("leader.replication.throttled.rate")))
        self._taking: dict[int, TokenBucket] = {}  # by follower

    def of(self, partition: Partition, follower: int) -> list[TokenBucket]:
        """The buckets that limit batches to this follower. Empty for an in-sync one."""
        if partition.view is None or follower in partition.view.isr:
            return []
        topic = self._settings.topic(partition.topic)
        sides = (
            ("leader.replication.throttled.replicas", self._node_id, self._sending),
            ("follower.replication.throttled.replicas", follower, self._taken_by(follower)),
        )
        return [
            bucket
            for setting, broker_id, bucket in sides
            if is_throttled(topic[setting], partition=partition.index, broker_id=broker_id)
        ]

    def _taken_by(self, follower: int) -> TokenBucket:
        return self._taking.setdefault(follower, TokenBucket(lambda: self._follower_rate(follower)))

    def _follower_rate(self, follower: int) -> int:
        """Another broker's setting, which is known only if it is a dynamic one in the metadata log."""
        image = self._image()
        for name in (str(follower), FLEET_WIDE):
            if (rate := image.config(ResourceType.BROKER, name).get(FOLLOWER_RATE)) is not None:
                return int(rate)
        return UNLIMITED
