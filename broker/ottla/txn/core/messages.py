"""What brokers say to each other about transactions: MessagePack by field names, so that versions mix. Pure."""

from collections.abc import Sequence

import msgspec

from ottla.txn.core.transaction import TopicPartition

__all__ = [
    "ADD_PARTITIONS",
    "PARTITIONS_PER_MESSAGE_MAX",
    "WRITE_MARKERS",
    "Codes",
    "MarkerOrder",
    "Membership",
    "Orders",
    "Partitions",
]

PARTITIONS_PER_MESSAGE_MAX = 10_000  # that markers are ordered for
WRITE_MARKERS, ADD_PARTITIONS = "WriteMarkers", "AddPartitions"
Partitions = Sequence[TopicPartition]


class MarkerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """How a transaction ended, for partitions that one broker leads.

    `after_epoch`: its records have lower epochs than the marker, so a marker that finds its own epoch is late.
    """

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commit: bool
    partitions: list[TopicPartition]
    after_epoch: bool = False


class Orders(msgspec.Struct, frozen=True):
    orders: list[MarkerOrder]


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """Are these partitions in the producer's transaction? With `add`, they are added."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: list[TopicPartition]
    add: bool = False


class Codes(msgspec.Struct, frozen=True):
    """Kafka's codes, in the order in which things were asked for."""

    codes: list[int]
