"""Classic groups as records: GroupMetadataKey v2, GroupMetadataValue v0-4 (written as v3, as Kafka 4.1 does). Pure."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from ottla.coordination.core.records import Record, array, field, reading, writing
from ottla.group.classic.member import Member
from ottla.group.contract.records import record_type
from ottla.wire.schema import Field, Struct

__all__ = ["group_record", "group_tombstone"]


def _value_struct(version: int) -> Struct:
    flexible = version >= 4
    fields = [
        field("protocol_type", "string", flexible=flexible, nullable=False),
        field("generation", "int32", flexible=flexible),
        field("protocol", "string", flexible=flexible),
        field("leader", "string", flexible=flexible),
    ]
    if version >= 2:
        fields.append(field("current_state_timestamp", "int64", flexible=flexible, default=-1))
    member = Struct("MemberMetadata", version, flexible, _member_fields(version))
    fields.append(array("members", member, flexible=flexible, nullable=False))
    return Struct("GroupMetadataValue", version, flexible, tuple(fields))


def _member_fields(version: int) -> tuple[Field, ...]:
    flexible = version >= 4
    text = partial(field, kind="string", flexible=flexible, nullable=False)
    data = partial(field, kind="bytes", flexible=flexible, nullable=False)
    fields = [text("member_id")]
    if version >= 3:
        fields.append(Field("group_instance_id", "string", None, False, True, flexible, None, None))
    fields += [text("client_id"), text("client_host")]
    if version >= 1:
        fields.append(field("rebalance_timeout", "int32", flexible=flexible, default=-1))
    fields.append(field("session_timeout", "int32", flexible=flexible))
    fields += [data("subscription"), data("assignment")]
    return tuple(fields)


_key = Struct("GroupMetadataKey", 2, False, (field("group", "string", nullable=False),))
_read_key, _write_key = reading(_key), writing(_key)
_read_value = reading(*(_value_struct(version) for version in range(5)))
_write_value = writing(_value_struct(3))


def group_record(
    group_id: str,
    *,
    protocol_type: str,
    generation: int,
    protocol: str | None,
    leader: str | None,
    since_ms: int | None,
    members: Sequence[tuple[Member, bytes]],
) -> Record:
    """The group's record: members with their assignments."""
    value = _write_value(
        {
            "protocol_type": protocol_type,
            "generation": generation,
            "protocol": protocol,
            "leader": leader,
            "current_state_timestamp": -1 if since_ms is None else since_ms,
            "members": [_member_values(member, protocol, assignment) for member, assignment in members],
        }
    )
    return _write_key({"group": group_id}), value


def _member_values(member: Member, protocol: str | None, assignment: bytes) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout": member.rebalance_timeout_ms,
        "session_timeout": member.session_timeout_ms,
        "subscription": member.metadata(protocol),
        "assignment": assignment,
    }


def group_tombstone(group_id: str) -> Record:
    return _write_key({"group": group_id}), None


@record_type(2)
def replay_group(state: Any, key: memoryview, value: memoryview | None) -> None:
    group_id = _read_key(key).group
    if value is None:
        state.remove_group(group_id, "classic")
        return
    read = _read_value(value)
    group = state.new_classic_group(group_id)
    members = [_member(one, read) for one in read.members]
    since_ms = read.current_state_timestamp
    group.restore(
        members,
        generation=read.generation,
        protocol_type=read.protocol_type,
        protocol_name=read.protocol,
        leader=read.leader,
        since_ms=None if since_ms < 0 else since_ms,
    )
    state.put_group(group)


def _member(one: Any, group: Any) -> Member:
    rebalance_ms = one.rebalance_timeout
    return Member(
        one.member_id,
        instance_id=one.group_instance_id,
        client_id=one.client_id,
        client_host=one.client_host,
        session_timeout_ms=one.session_timeout,
        rebalance_timeout_ms=one.session_timeout if rebalance_ms < 0 else rebalance_ms,
        protocols=((group.protocol or "", one.subscription),),
        assignment=one.assignment,
    )
