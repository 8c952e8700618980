"""Heartbeat: a member lives, and hears whether its group comes together anew.

v3 static members (KIP-345) · v4 flexible.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError


@api(key=12, versions=(0, 4), pipelined=True)
def heartbeat(request: Any, call: Call) -> Answer:
    shard = call.node.groups.shard_for_members(request.group_id)
    group = shard.groups.get(request.group_id)
    if group is None:
        raise KafkaError(Code.unknown_member_id)
    effects = group.heartbeat(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        now=shard.clock.monotonic(),
    )
    if effects:
        shard.perform(group, effects)
    return call.reply(error_code=Code.none)
