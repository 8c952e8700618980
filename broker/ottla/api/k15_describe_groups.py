"""DescribeGroups: members of classic groups, their subscriptions and assignments.

v3 authorized operations (KIP-430) · v4 instance ids (KIP-345) · v5 flexible · v6 GROUP_ID_NOT_FOUND (KIP-1043); before,
a group that does not exist is Dead.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.group.classic import ClassicGroup
from ottla.group.classic_member import Member
from ottla.group.classic_states import State

NOT_FOUND_SINCE = 6


@api(key=15, versions=(0, 6))
def describe_groups(request: Any, call: Call) -> Answer:
    return call.reply(groups=[_group(group_id, call) for group_id in request.groups])


def _group(group_id: str, call: Call) -> dict[str, Any]:
    try:
        group = call.node.groups.shard_of(group_id).groups.get(group_id)
    except KafkaError as error:
        return {"group_id": group_id, "error_code": error.code}
    if isinstance(group, ClassicGroup):
        return _described(group)
    if call.version < NOT_FOUND_SINCE:
        return {"group_id": group_id, "error_code": Code.none, "group_state": State.DEAD.value}
    text = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
    return {
        "group_id": group_id,
        "error_code": Code.group_id_not_found,
        "error_message": text,
        "group_state": State.DEAD.value,
    }


def _described(group: ClassicGroup) -> dict[str, Any]:
    """Subscriptions and assignments are told only when they fit together."""
    protocol = group.protocol_name if group.current is State.STABLE else None
    return {
        "group_id": group.group_id,
        "error_code": Code.none,
        "group_state": group.state,
        "protocol_type": group.protocol_type,
        "protocol_data": protocol or "",
        "members": [_member(member, protocol) for member in group.members.values()],
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
