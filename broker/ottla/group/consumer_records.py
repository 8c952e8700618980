"""The records of consumer groups (KIP-848) in the offsets topic, in Kafka's formats. Pure.

An `Entry` is one record with its meaning; without a value it deletes. Record type 4, the partition counts of earlier
versions, is read over: since Kafka 4.1 a hash in the group's epoch record takes its place.
"""

import struct as packing
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec

from ottla.group.consumer_member import ClassicMember, MemberState, Partitions, Position, Subscription
from ottla.wire.reader import Malformed, reader_of
from ottla.wire.schema import Field, Struct
from ottla.wire.writer import writer_of

__all__ = [
    "CURRENT_ASSIGNMENT",
    "GROUP_EPOCH",
    "KINDS",
    "MEMBER",
    "REGEX",
    "TARGET_ASSIGNMENT",
    "TARGET_EPOCH",
    "Entry",
    "GroupEpoch",
    "ResolvedRegex",
    "decode",
    "encode",
]

GROUP_EPOCH, PARTITION_COUNTS, MEMBER, TARGET_EPOCH, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT, REGEX = 3, 4, 5, 6, 7, 8, 16
KEY_FIELDS = {
    GROUP_EPOCH: 1,
    PARTITION_COUNTS: 1,
    MEMBER: 2,
    TARGET_EPOCH: 1,
    TARGET_ASSIGNMENT: 2,
    CURRENT_ASSIGNMENT: 2,
    REGEX: 2,
}
KINDS = frozenset(KEY_FIELDS)


class GroupEpoch(msgspec.Struct, frozen=True):
    epoch: int
    metadata_hash: int = 0


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that matched at this version of the metadata."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp_ms: int = 0


class Entry(NamedTuple):
    """`key` is (group id,) or (group id, member id or regular expression).

    Values: 3 GroupEpoch · 5 Subscription · 6 int · 7 Partitions · 8 Position · 16 ResolvedRegex.
    """

    kind: int
    key: tuple[str, ...]
    value: Any


# -- schemas


def _field(name: str, kind: str, **facts: Any) -> Field:
    base: dict[str, Any] = {"struct": None, "is_array": False, "nullable": False, "tag": None, "default": None}
    return Field(name=name, kind=kind, flexible=True, **(base | facts))


def _struct(name: str, *fields: Field) -> Struct:
    return Struct(name, 0, True, fields)


_TOPIC = _struct(
    "TopicPartitions", _field("topic_id", "uuid"), _field("partitions", "int32", is_array=True, default=())
)
_PROTOCOL = _struct("ClassicProtocol", _field("name", "string"), _field("metadata", "bytes"))
_CLASSIC = _struct(
    "ClassicMemberMetadata",
    _field("session_timeout_ms", "int32"),
    _field("supported_protocols", "struct", struct=_PROTOCOL, is_array=True, default=()),
)


def _topics(name: str) -> Field:
    return _field(name, "struct", struct=_TOPIC, is_array=True, default=())


_VALUES: dict[int, Struct] = {
    GROUP_EPOCH: _struct(
        "ConsumerGroupMetadataValue",
        _field("epoch", "int32"),
        _field("metadata_hash", "int64", tag=0, default=0),
    ),
    MEMBER: _struct(
        "ConsumerGroupMemberMetadataValue",
        _field("instance_id", "string", nullable=True),
        _field("rack_id", "string", nullable=True),
        _field("client_id", "string"),
        _field("client_host", "string"),
        _field("subscribed_topic_names", "string", is_array=True),
        _field("subscribed_topic_regex", "string", nullable=True),
        _field("rebalance_timeout_ms", "int32"),
        _field("server_assignor", "string", nullable=True),
        _field("classic_member_metadata", "struct", struct=_CLASSIC, nullable=True, tag=0),
    ),
    TARGET_EPOCH: _struct("ConsumerGroupTargetAssignmentMetadataValue", _field("assignment_epoch", "int32")),
    TARGET_ASSIGNMENT: _struct("ConsumerGroupTargetAssignmentMemberValue", _topics("topic_partitions")),
    CURRENT_ASSIGNMENT: _struct(
        "ConsumerGroupCurrentMemberAssignmentValue",
        _field("member_epoch", "int32"),
        _field("previous_member_epoch", "int32"),
        _field("state", "int8"),
        _topics("assigned_partitions"),
        _topics("partitions_pending_revocation"),
    ),
    REGEX: _struct(
        "ConsumerGroupRegularExpressionValue",
        _field("topics", "string", is_array=True),
        _field("version", "int64"),
        _field("timestamp", "int64"),
    ),
}
_WRITE = {kind: writer_of(struct) for kind, struct in _VALUES.items()}
_READ = {kind: reader_of(struct, struct) for kind, struct in _VALUES.items()}

VERSION = packing.Struct(">h")
VALUE_VERSION = VERSION.pack(0)


# -- to bytes


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    key = VERSION.pack(entry.kind) + b"".join(map(_text, entry.key))
    if entry.value is None:
        return key, None
    parts = [VALUE_VERSION]
    _WRITE[entry.kind](parts, _FIELDS[entry.kind](entry.value))
    return key, b"".join(parts)


def _text(value: str) -> bytes:
    data = value.encode()
    return VERSION.pack(len(data)) + data


def by_topic(partitions: Partitions) -> list[dict[str, Any]]:
    """As the wire has them, in a settled order."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    return [{"topic_id": topic_id, "partitions": indexes} for topic_id, indexes in topics.items()]


def _member_fields(member: Subscription) -> dict[str, Any]:
    classic = member.classic
    return {
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": sorted(member.topics),
        "subscribed_topic_regex": member.regex,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "server_assignor": member.assignor,
        "classic_member_metadata": classic
        and {
            "session_timeout_ms": classic.session_timeout_ms,
            "supported_protocols": [{"name": name, "metadata": data} for name, data in classic.protocols],
        },
    }


_FIELDS: dict[int, Callable[[Any], dict[str, Any]]] = {
    GROUP_EPOCH: lambda value: {"epoch": value.epoch, "metadata_hash": value.metadata_hash},
    MEMBER: _member_fields,
    TARGET_EPOCH: lambda value: {"assignment_epoch": value},
    TARGET_ASSIGNMENT: lambda value: {"topic_partitions": by_topic(value)},
    CURRENT_ASSIGNMENT: lambda value: {
        "member_epoch": value.epoch,
        "previous_member_epoch": value.previous_epoch,
        "state": value.state,
        "assigned_partitions": by_topic(value.assigned),
        "partitions_pending_revocation": by_topic(value.revoking),
    },
    REGEX: lambda value: {
        "topics": sorted(value.topics),
        "version": value.version,
        "timestamp": value.timestamp_ms,
    },
}


# -- from bytes


def decode(key: bytes, value: bytes | None) -> Entry | None:
    """None for a kind that is read over. Malformed, struct.error, IndexError or UnicodeDecodeError: damaged."""
    (kind,) = VERSION.unpack_from(key, 0)
    names = _key_fields(key, KEY_FIELDS[kind])
    if kind == PARTITION_COUNTS:
        return None
    if value is None:
        return Entry(kind, names, None)
    (version,) = VERSION.unpack_from(value, 0)
    if version != 0:
        raise Malformed(f"version {version} of a value of record type {kind}")
    message, _ = _READ[kind](memoryview(value), 2)
    return Entry(kind, names, _VALUE_OF[kind](message))


def _key_fields(key: bytes, count: int) -> tuple[str, ...]:
    names, position = [], 2
    for _ in range(count):
        (size,) = VERSION.unpack_from(key, position)
        position += 2
        if not 0 <= size <= len(key) - position:
            raise Malformed(f"a key's text of {size} bytes, {len(key) - position} remain")
        names.append(str(key[position : position + size], "utf-8"))
        position += size
    return tuple(names)


def partitions_of(topics: Iterable[Any]) -> Partitions:
    return frozenset((topic.topic_id or bytes(16), index) for topic in topics for index in topic.partitions)


def _member_of(message: Any) -> Subscription:
    classic = message.classic_member_metadata
    return Subscription(
        instance_id=message.instance_id,
        rack_id=message.rack_id,
        client_id=message.client_id,
        client_host=message.client_host,
        topics=frozenset(message.subscribed_topic_names),
        regex=message.subscribed_topic_regex,
        rebalance_timeout_ms=message.rebalance_timeout_ms,
        assignor=message.server_assignor,
        classic=classic
        and ClassicMember(
            classic.session_timeout_ms, tuple((each.name, each.metadata) for each in classic.supported_protocols)
        ),
    )


def _state_of(number: int) -> MemberState:
    return MemberState(number) if number in (0, 1, 2) else MemberState.UNKNOWN


_VALUE_OF: dict[int, Callable[[Any], Any]] = {
    GROUP_EPOCH: lambda message: GroupEpoch(message.epoch, message.metadata_hash),
    MEMBER: _member_of,
    TARGET_EPOCH: lambda message: message.assignment_epoch,
    TARGET_ASSIGNMENT: lambda message: partitions_of(message.topic_partitions),
    CURRENT_ASSIGNMENT: lambda message: Position(
        message.member_epoch,
        message.previous_member_epoch,
        _state_of(message.state),
        partitions_of(message.assigned_partitions),
        partitions_of(message.partitions_pending_revocation),
    ),
    REGEX: lambda message: ResolvedRegex(frozenset(message.topics), message.version, message.timestamp),
}
