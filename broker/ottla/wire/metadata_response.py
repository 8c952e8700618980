"""MetadataResponse by hand: a fleet's worth of partitions is encoded once per metadata version, not per request. Pure.

Versions: 1 racks and controller, 2 cluster id, 3 throttle time, 5 offline replicas, 7 leader epochs, 8 authorized
operations, 9 flexible, 10 topic ids, 11 without the cluster's authorized operations, 13 top-level error code.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ottla.ports import Buffer
from ottla.wire.writer import array_head, text

__all__ = ["BrokerEndpoint", "MetadataHead", "PartitionLine", "encode_partitions", "encode_topic", "response"]

INT16 = struct.Struct(">h").pack
INT32 = struct.Struct(">i").pack
NO_OPERATIONS = -(2**31)


@dataclass(slots=True, frozen=True)
class BrokerEndpoint:
    id: int
    host: str
    port: int
    rack: str | None


@dataclass(slots=True, frozen=True)
class MetadataHead:
    brokers: Sequence[BrokerEndpoint]
    cluster_id: str
    controller_id: int
    operations: int = NO_OPERATIONS


@dataclass(slots=True, frozen=True)
class PartitionLine:
    error_code: int
    index: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]


def encode_partitions(version: int, partitions: Sequence[PartitionLine]) -> bytes:
    """The array of a topic's partitions."""
    flexible = version >= 9
    parts = [array_head(len(partitions), flexible=flexible)]
    for line in partitions:
        parts.append(struct.pack(">hii", line.error_code, line.index, line.leader))
        if version >= 7:
            parts.append(INT32(line.leader_epoch))
        parts.append(_ids(line.replicas, flexible) + _ids(line.isr, flexible))
        if version >= 5:
            parts.append(_ids(line.offline, flexible))
        if flexible:
            parts.append(b"\0")
    return b"".join(parts)


def encode_topic(
    version: int,
    *,
    error_code: int,
    name: str | None,
    topic_id: bytes,
    internal: bool,
    partitions: bytes,
    operations: int = NO_OPERATIONS,
) -> bytes:
    flexible = version >= 9
    parts = [INT16(error_code), text(name, flexible=flexible)]
    if version >= 10:
        parts.append(topic_id)
    if version >= 1:
        parts.append(b"\1" if internal else b"\0")
    parts.append(partitions)
    if version >= 8:
        parts.append(INT32(operations))
    if flexible:
        parts.append(b"\0")
    return b"".join(parts)


def response(
    version: int, head: MetadataHead, topics: Sequence[bytes], *, error_code: int = 0, throttle_ms: int = 0
) -> list[Buffer]:
    flexible = version >= 9
    parts: list[Buffer] = []
    if version >= 3:
        parts.append(INT32(throttle_ms))
    parts.append(_brokers(version, head.brokers))
    if version >= 2:
        parts.append(text(head.cluster_id, flexible=flexible))
    if version >= 1:
        parts.append(INT32(head.controller_id))
    parts.append(array_head(len(topics), flexible=flexible))
    parts += topics
    if 8 <= version <= 10:
        parts.append(INT32(head.operations))
    if version >= 13:
        parts.append(INT16(error_code))
    if flexible:
        parts.append(b"\0")
    return [b"".join(parts)]


def _brokers(version: int, brokers: Sequence[BrokerEndpoint]) -> bytes:
    flexible = version >= 9
    parts = [array_head(len(brokers), flexible=flexible)]
    for broker in brokers:
        parts += (INT32(broker.id), text(broker.host, flexible=flexible), INT32(broker.port))
        if version >= 1:
            parts.append(text(broker.rack, flexible=flexible))
        if flexible:
            parts.append(b"\0")
    return b"".join(parts)


def _ids(ids: Sequence[int], flexible: bool) -> bytes:
    return array_head(len(ids), flexible=flexible) + struct.pack(f">{len(ids)}i", *ids)
