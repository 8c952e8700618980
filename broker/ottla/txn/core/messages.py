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
    "TooMany",
    "read_orders",
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


class OrdersUnread(msgspec.Struct, frozen=True):
    orders: msgspec.Raw


class OrderUnread(msgspec.Struct, frozen=True):
    partitions: msgspec.Raw


class TooMany(Exception):
    """A message has more items than brokers send. The one argument says how many, as far as they were counted."""


def read_orders(data: bytes) -> list[MarkerOrder]:
    """Counted before it is read: 300,000 items in a few megabytes take 75 MB and a tenth of a second. TooMany."""
    orders = msgspec.msgpack.decode(data, type=OrdersUnread).orders
    if (count := items_in(orders)) > PARTITIONS_PER_MESSAGE_MAX:
        raise TooMany(count)
    unread = msgspec.msgpack.decode(orders, type=list[OrderUnread])
    if (count := sum(items_in(one.partitions) for one in unread)) > PARTITIONS_PER_MESSAGE_MAX:
        raise TooMany(count)
    return msgspec.msgpack.decode(orders, type=list[MarkerOrder])


def items_in(array: msgspec.Raw) -> int:
    """As the head of a MessagePack array says; 0 for what is none, which fails when it is read."""
    head = bytes(memoryview(array)[:5])
    match head[0]:
        case 0xDC:
            return int.from_bytes(head[1:3])
        case 0xDD:
            return int.from_bytes(head[1:5])
        case small:
            return small & 0x0F if small & 0xF0 == 0x90 else 0


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
