"""LeaveGroup: members go, or an administrator removes them.

v3 several members at once, also by instance id (KIP-345) · v4 flexible · v5 reason (KIP-800).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import LeaveGroupRequest
from ottla.errors import Code
from ottla.group.classic.member import REASON_CHARACTERS_MAX, Leave
from ottla.group.coordinator import GroupCoordinator

SEVERAL_SINCE = 3


@api(key=13, versions=(0, 5))
async def leave_group(request: LeaveGroupRequest, call: Call, groups: GroupCoordinator) -> Answer:
    left = await groups.leave(request.group_id, _members(request, call))
    code = left.code
    if call.version < SEVERAL_SINCE and left.members:
        code = code or left.members[0][1]
    return call.reply(error_code=code, members=[_line(one, result) for one, result in left.members])


def _members(request: LeaveGroupRequest, call: Call) -> list[Leave]:
    if call.version < SEVERAL_SINCE:
        return [Leave(request.member_id)]
    return [Leave(one.member_id, one.group_instance_id, _short(one.reason)) for one in request.members]


def _short(reason: str | None) -> str | None:
    return reason and reason[:REASON_CHARACTERS_MAX]


def _line(one: Leave, code: Code) -> dict[str, Any]:
    return {"member_id": one.member_id, "group_instance_id": one.instance_id, "error_code": code}
