"""DeleteGroups: empty groups go, with their offsets or the states of what they share. v2 flexible."""

from ottla.api.authorizing import require
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DeleteGroupsRequest
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.security.core.access import Operation, Resource


@api(key=42, versions=(0, 2))
async def delete_groups(request: DeleteGroupsRequest, call: Call, groups: GroupCoordinator) -> Answer:
    names = dict.fromkeys(request.groups_names)
    return call.reply(results=[{"group_id": name, "error_code": await _delete(name, call, groups)} for name in names])


async def _delete(group_id: str, call: Call, groups: GroupCoordinator) -> Code:
    try:
        require(call, Operation.DELETE, Resource.GROUP, group_id)
        await groups.delete_group(group_id)
    except KafkaError as error:
        return error.code
    return Code.none
