"""What consumers of the classic protocol put into JoinGroup and SyncGroup: subscriptions and assignments. Pure.

The broker decodes them only in groups with members of both protocols (KIP-848). Newer versions add fields at the end,
which are ignored.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.coordination.core.records import array, field
from ottla.wire.reader import Malformed, reader_of
from ottla.wire.schema import Field, Struct
from ottla.wire.writer import writer_of

__all__ = [
    "EmbeddedAssignment",
    "EmbeddedSubscription",
    "encode_assignment",
    "read_assignment",
    "read_subscription",
    "version_of",
]

NEWEST = 3
SUBSCRIPTION_BYTES_MAX = 1 << 20  # some 30,000 topics and partitions; reading it holds the loop
UNREADABLE = (ValueError, IndexError, struct.error)

_TOPIC = Struct("TopicPartition", 0, False, (field("topic", "string"), array("partitions", "int32")))


def _nullable(name: str, kind: str) -> Field:
    return Field(name, kind, None, False, True, False, None, None)


def _subscription(version: int) -> Struct:
    fields = [array("topics", "string"), _nullable("user_data", "bytes")]
    if version >= 1:
        fields.append(array("owned_partitions", _TOPIC))
    if version >= 2:
        fields.append(field("generation_id", "int32", default=-1))
    if version >= NEWEST:
        fields.append(_nullable("rack_id", "string"))
    return Struct("ConsumerProtocolSubscription", version, False, tuple(fields))


_ASSIGNMENT = Struct(
    "ConsumerProtocolAssignment", 0, False, (array("assigned_partitions", _TOPIC), _nullable("user_data", "bytes"))
)
_READ = {version: reader_of(_subscription(version), _subscription(NEWEST)) for version in range(NEWEST + 1)}
_READ_ASSIGNMENT = reader_of(_ASSIGNMENT, _ASSIGNMENT)
_WRITE_ASSIGNMENT = writer_of(_ASSIGNMENT)


class EmbeddedSubscription(NamedTuple):
    version: int
    topics: frozenset[str]
    owned: frozenset[tuple[str, int]]
    rack_id: str | None


def read_subscription(data: bytes) -> EmbeddedSubscription:
    """Raises Malformed."""
    version = _version(data)
    if len(data) > SUBSCRIPTION_BYTES_MAX:
        raise Malformed(f"a consumer's subscription of {len(data)} bytes; at most {SUBSCRIPTION_BYTES_MAX} are read")
    try:
        read, _ = _READ[min(version, NEWEST)](memoryview(data), 2)
    except UNREADABLE as error:
        raise Malformed(f"not a consumer's subscription: {error}") from None
    return EmbeddedSubscription(version, frozenset(read.topics or ()), _flat(read.owned_partitions), read.rack_id)


def version_of(subscription: bytes) -> int:
    """The version for the assignment that answers it; 0 when it has none."""
    try:
        return _version(subscription)
    except Malformed:
        return 0


class EmbeddedAssignment(NamedTuple):
    """`partitions` are (topic, index); `user_data` is private to the client's assignor."""

    partitions: frozenset[tuple[str, int]]
    user_data: bytes


def read_assignment(data: bytes) -> EmbeddedAssignment:
    """Empty bytes are an empty assignment."""
    if not data:
        return EmbeddedAssignment(frozenset(), b"")
    _version(data)
    try:
        read, _ = _READ_ASSIGNMENT(memoryview(data), 2)
    except UNREADABLE as error:
        raise Malformed(f"not a consumer's assignment: {error}") from None
    return EmbeddedAssignment(_flat(read.assigned_partitions), read.user_data or b"")


def encode_assignment(partitions: Mapping[str, Sequence[int]], *, version: int) -> bytes:
    parts = [min(version, NEWEST).to_bytes(2)]
    topics = [{"topic": topic, "partitions": sorted(indexes)} for topic, indexes in sorted(partitions.items())]
    _WRITE_ASSIGNMENT(parts, {"assigned_partitions": topics, "user_data": None})
    return b"".join(parts)


def _version(data: bytes) -> int:
    version = int.from_bytes(data[:2], signed=True) if len(data) >= 2 else -1
    if version < 0:
        raise Malformed(f"a consumer's data of version {version} in {len(data)} bytes")
    return version


def _flat(topics: Any) -> frozenset[tuple[str, int]]:
    return frozenset((topic.topic, index) for topic in topics or () for index in topic.partitions or ())
