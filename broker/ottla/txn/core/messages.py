"""Requests between brokers about transactions: MessagePack by field names, so that versions can mix. Pure."""

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

PARTITIONS_PER_MESSAGE_MAX = 10_000  # in one request for markers
WRITE_MARKERS, ADD_PARTITIONS = "WriteMarkers", "AddPartitions"
Partitions = Sequence[TopicPartition]


class MarkerOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A transaction's end, for the partitions that one broker leads.

    `after_epoch`: the transaction's records have lower epochs than the marker. If the partition has a record with the
    marker's epoch, the marker is late.
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
    """A message has more items than brokers send. The argument is their number, as far as counted."""


def read_orders(data: bytes) -> list[MarkerOrder]:
    """Items are counted before decoding: 300,000 in a few megabytes take 75 MB and 0.1 s. Raises TooMany."""
    orders = msgspec.msgpack.decode(data, type=OrdersUnread).orders
    if (count := items_in(orders)) > PARTITIONS_PER_MESSAGE_MAX:
        raise TooMany(count)
    unread = msgspec.msgpack.decode(orders, type=list[OrderUnread])
    if (count := sum(items_in(one.partitions) for one in unread)) > PARTITIONS_PER_MESSAGE_MAX:
        raise TooMany(count)
    return msgspec.msgpack.decode(orders, type=list[MarkerOrder])


def items_in(array: msgspec.Raw) -> int:
    """The length in the header of a MessagePack array; 0 for anything else, which fails when decoded."""
    head = bytes(memoryview(array)[:5])
    match head[0]:
        case 0xDC:
            return int.from_bytes(head[1:3])
        case 0xDD:
            return int.from_bytes(head[1:5])
        case small:
            return small & 0x0F if small & 0xF0 == 0x90 else 0


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """Asks whether these partitions are in the producer's transaction; with `add`, adds them."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: list[TopicPartition]
    add: bool = False


class Codes(msgspec.Struct, frozen=True):
    """Kafka's codes, in the order of the request's items."""

    codes: list[int]
