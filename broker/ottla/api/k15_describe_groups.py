"""DescribeGroups: members of classic groups, their subscriptions and assignments.

v3 authorized operations (KIP-430) · v4 instance ids (KIP-345) · v5 flexible · v6 GROUP_ID_NOT_FOUND (KIP-1043); before,
a group that does not exist is Dead.
"""

from typing import Any

from ottla.api.authorizing import NOT_ASKED, operations_if, require
from ottla.api.call import Answer, Call
from ottla.api.group_description import described_members
from ottla.api.registry import api
from ottla.api.requests import DescribeGroupsRequest
from ottla.api.slices import encoded_or_refused
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup
from ottla.group.classic.member import Member
from ottla.group.classic.states import State
from ottla.group.coordinator import GroupCoordinator
from ottla.security.core.access import Operation, Resource

NOT_FOUND_SINCE = 6


@api(key=15, versions=(0, 6))
async def describe_groups(request: DescribeGroupsRequest, call: Call, groups: GroupCoordinator) -> Answer:
    """In slices, however small the request: a group may have very many members."""

    async def line(group_id: str) -> dict[str, Any]:
        require(call, Operation.DESCRIBE, Resource.GROUP, group_id)
        described = await _group(group_id, call, groups)
        asked = getattr(request, "include_authorized_operations", False) and described["error_code"] is Code.none
        return {**described, "authorized_operations": operations_if(asked, call, Resource.GROUP, group_id)}

    return call.reply(
        groups=await encoded_or_refused(call, ("groups",), request.groups, line, refused=_refused, key=str)
    )


def _refused(group_id: str, error: KafkaError) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "error_code": error.code,
        "error_message": error.message,
        "authorized_operations": NOT_ASKED,
    }


async def _group(group_id: str, call: Call, groups: GroupCoordinator) -> dict[str, Any]:
    group = groups.shard_of(group_id).groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return await _described(group, call)
    if call.version < NOT_FOUND_SINCE:
        return {"group_id": group_id, "error_code": Code.none, "group_state": State.DEAD.value}
    text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return {
        "group_id": group_id,
        "error_code": Code.group_id_not_found,
        "error_message": text,
        "group_state": State.DEAD.value,
    }


async def _described(group: ClassicGroup, call: Call) -> dict[str, Any]:
    """Subscriptions and assignments are given only when they fit together."""
    protocol = group.protocol_name if group.current is State.STABLE else None
    return {
        "group_id": group.group_id,
        "error_code": Code.none,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": protocol or "",
        "members": await described_members(group.members.values(), lambda one: _member(one, protocol), call),
    }


def _member(member: Member, protocol: str | None) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "member_metadata": b"" if protocol is None else member.metadata(protocol),
        "member_assignment": b"" if protocol is None else member.assignment,
    }
