"""DeleteGroups: empty groups go, with their offsets or the states of what they share. v2 flexible."""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.group.share.group import ShareGroup


@api(key=42, versions=(0, 2))
async def delete_groups(request: Any, call: Call) -> Answer:
    names = dict.fromkeys(request.groups_names)
    return call.reply(results=[{"group_id": name, "error_code": await _delete(name, call)} for name in names])


async def _delete(group_id: str, call: Call) -> Code:
    try:
        shard = call.node.groups.shard_of(group_id)
        group = shard.groups.get(group_id)
        if group is None:
            return Code.group_id_not_found
        if not group.is_empty:
            return Code.non_empty_group
        if isinstance(group, ShareGroup):
            await call.node.groups.states.delete_group(shard, group)
            return Code.none
        await shard.until_committed(shard.delete_group(group))
    except KafkaError as error:
        return error.code
    return Code.none
