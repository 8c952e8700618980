"""Heartbeat: a sign of life of a member; the answer says whether its group rebalances.

v3 static members (KIP-345) · v4 flexible.
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import HeartbeatRequest
from ottla.errors import Code
from ottla.group.coordinator import GroupCoordinator


@api(key=12, versions=(0, 4), pipelined=True)
def heartbeat(request: HeartbeatRequest, call: Call, groups: GroupCoordinator) -> Answer:
    groups.heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
    return call.reply(error_code=Code.none)
