"""The records of share groups (KIP-932) in the offsets topic, in the formats of Kafka 4.1. Pure."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ottla.group.consumer.member import Position, Subscription
from ottla.group.heartbeats.entries import (
    Format,
    Formats,
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
    "STATES",
    "TARGET_ASSIGNMENT",
    "TARGET_EPOCH",
    "StatePartitions",
    "TopicStates",
    "decode",
    "encode",
]

MEMBER, GROUP_EPOCH, TARGET_EPOCH, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT, STATES = 10, 11, 12, 13, 14, 15


class TopicStates(msgspec.Struct, frozen=True):
    """The partitions of a topic that are initialized, or are being initialized."""

    name: str
    partitions: frozenset[int]


class StatePartitions(msgspec.Struct, frozen=True):
    """Which share-partitions of a group have a state at the persister, by topic id (ShareGroupStatePartitionMetadata).

    `initializing`: requested, perhaps already done. `deleting`: requested, perhaps already deleted.
    """

    initializing: Mapping[bytes, TopicStates] = {}
    initialized: Mapping[bytes, TopicStates] = {}
    deleting: Mapping[bytes, str] = {}


# -- members


def _member_fields(member: Subscription) -> dict[str, Any]:
    return {
        "rack_id": member.rack_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": sorted(member.topics),
    }


def _member_of(message: Any) -> Subscription:
    return Subscription(
        rack_id=message.rack_id,
        client_id=message.client_id,
        client_host=message.client_host,
        topics=frozenset(message.subscribed_topic_names),
    )


def _position_fields(position: Position) -> dict[str, Any]:
    return {
        "member_epoch": position.epoch,
        "previous_member_epoch": position.previous_epoch,
        "state": position.state,
        "assigned_partitions": by_topic(position.assigned),
    }


def _position_of(message: Any) -> Position:
    assigned = partitions_of(message.assigned_partitions)
    return Position(message.member_epoch, message.previous_member_epoch, state_of(message.state), assigned)


# -- states


def _states_fields(states: StatePartitions) -> dict[str, Any]:
    return {
        "initializing_topics": _lines(states.initializing),
        "initialized_topics": _lines(states.initialized),
        "deleting_topics": [
            {"topic_id": topic_id, "topic_name": name} for topic_id, name in sorted(states.deleting.items())
        ],
    }


def _lines(found: Mapping[bytes, TopicStates]) -> list[dict[str, Any]]:
    return [
        {"topic_id": topic_id, "topic_name": each.name, "partitions": sorted(each.partitions)}
        for topic_id, each in sorted(found.items())
    ]


def _states_of(message: Any) -> StatePartitions:
    return StatePartitions(
        _topic_states(message.initializing_topics),
        _topic_states(message.initialized_topics),
        {line.topic_id or bytes(16): line.topic_name for line in message.deleting_topics},
    )


def _topic_states(lines: Any) -> dict[bytes, TopicStates]:
    return {line.topic_id or bytes(16): TopicStates(line.topic_name, frozenset(line.partitions)) for line in lines}


# -- all kinds

_MEMBER = struct(
    "ShareGroupMemberMetadataValue",
    field("rack_id", "string", nullable=True),
    field("client_id", "string"),
    field("client_host", "string"),
    array("subscribed_topic_names", "string"),
)
_CURRENT = struct(
    "ShareGroupCurrentMemberAssignmentValue",
    field("member_epoch", "int32"),
    field("previous_member_epoch", "int32"),
    field("state", "int8"),
    topics("assigned_partitions"),
)
_TOPIC = struct("TopicInfo", field("topic_id", "uuid"), field("topic_name", "string"))
_TOPIC_PARTITIONS = struct(
    "TopicPartitionsInfo",
    field("topic_id", "uuid"),
    field("topic_name", "string"),
    array("partitions", "int32"),
)
_STATES = struct(
    "ShareGroupStatePartitionMetadataValue",
    array("initializing_topics", _TOPIC_PARTITIONS),
    array("initialized_topics", _TOPIC_PARTITIONS),
    array("deleting_topics", _TOPIC),
)

_FORMATS = Formats(
    {
        MEMBER: Format(2, _MEMBER, _member_fields, _member_of),
        GROUP_EPOCH: epoch_format("ShareGroupMetadataValue", field("metadata_hash", "int64")),
        TARGET_EPOCH: target_epoch_format("ShareGroupTargetAssignmentMetadataValue"),
        TARGET_ASSIGNMENT: target_format("ShareGroupTargetAssignmentMemberValue"),
        CURRENT_ASSIGNMENT: Format(2, _CURRENT, _position_fields, _position_of),
        STATES: Format(1, _STATES, _states_fields, _states_of),
    }
)
KINDS = _FORMATS.kinds
encode, decode = _FORMATS.encode, _FORMATS.decode
