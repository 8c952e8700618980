"""The records of consumer groups (KIP-848) in the offsets topic, in Kafka's formats. Pure.

Record type 4, the partition counts of earlier versions, is ignored: since Kafka 4.1 a hash in the group's epoch record
replaces it.
"""

from typing import Any

import msgspec

from ottla.group.consumer.member import ClassicMember, Position, Subscription
from ottla.group.heartbeats.entries import (
    Entry,
    Format,
    Formats,
    GroupEpoch,
    array,
    by_topic,
    epoch_format,
    field,
    partitions_of,
    state_of,
    struct,
    target_epoch_format,
    target_format,
    topics,
)

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


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that matched at this version of the metadata."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    timestamp_ms: int = 0


# -- members

_PROTOCOL = struct("ClassicProtocol", field("name", "string"), field("metadata", "bytes"))
_CLASSIC = struct(
    "ClassicMemberMetadata",
    field("session_timeout_ms", "int32"),
    array("supported_protocols", _PROTOCOL),
)
_MEMBER = struct(
    "ConsumerGroupMemberMetadataValue",
    field("instance_id", "string", nullable=True),
    field("rack_id", "string", nullable=True),
    field("client_id", "string"),
    field("client_host", "string"),
    array("subscribed_topic_names", "string"),
    field("subscribed_topic_regex", "string", nullable=True),
    field("rebalance_timeout_ms", "int32"),
    field("server_assignor", "string", nullable=True),
    field("classic_member_metadata", _CLASSIC, nullable=True, tag=0),
)


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


# -- all kinds


def _position_fields(position: Position) -> dict[str, Any]:
    return {
        "member_epoch": position.epoch,
        "previous_member_epoch": position.previous_epoch,
        "state": position.state,
        "assigned_partitions": by_topic(position.assigned),
        "partitions_pending_revocation": by_topic(position.revoking),
    }


def _position_of(message: Any) -> Position:
    return Position(
        message.member_epoch,
        message.previous_member_epoch,
        state_of(message.state),
        partitions_of(message.assigned_partitions),
        partitions_of(message.partitions_pending_revocation),
    )


_CURRENT = struct(
    "ConsumerGroupCurrentMemberAssignmentValue",
    field("member_epoch", "int32"),
    field("previous_member_epoch", "int32"),
    field("state", "int8"),
    topics("assigned_partitions"),
    topics("partitions_pending_revocation"),
)
_REGEX = struct(
    "ConsumerGroupRegularExpressionValue",
    array("topics", "string"),
    field("version", "int64"),
    field("timestamp", "int64"),
)

_FORMATS = Formats(
    {
        GROUP_EPOCH: epoch_format("ConsumerGroupMetadataValue", field("metadata_hash", "int64", tag=0)),
        MEMBER: Format(2, _MEMBER, _member_fields, _member_of),
        TARGET_EPOCH: target_epoch_format("ConsumerGroupTargetAssignmentMetadataValue"),
        TARGET_ASSIGNMENT: target_format("ConsumerGroupTargetAssignmentMemberValue"),
        CURRENT_ASSIGNMENT: Format(2, _CURRENT, _position_fields, _position_of),
        REGEX: Format(
            2,
            _REGEX,
            lambda value: {"topics": sorted(value.topics), "version": value.version, "timestamp": value.timestamp_ms},
            lambda message: ResolvedRegex(frozenset(message.topics), message.version, message.timestamp),
        ),
    },
    read_over={PARTITION_COUNTS: 1},
)
KINDS = _FORMATS.kinds
encode, decode = _FORMATS.encode, _FORMATS.decode
