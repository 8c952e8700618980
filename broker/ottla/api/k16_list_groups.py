"""ListGroups: the groups that this broker coordinates. v3 flexible · v4 by state (KIP-518) · v5 by type (KIP-848)."""

from typing import Any

from ottla.api.authorizing import sees
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ListGroupsRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code
from ottla.group.contract.group import Group
from ottla.group.coordinator import GroupCoordinator
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource


@api(key=16, versions=(0, 5))
async def list_groups(request: ListGroupsRequest, call: Call, groups: GroupCoordinator) -> Answer:
    """In slices, however small the request: a broker may keep very many groups."""
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    known = [group for shard in groups.shards for group in shard.groups.values()]
    loading = any(shard.loading for shard in groups.shards)
    sees_all = sees(call, Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    lines = (
        _line(group)
        async for group in paced(known, call)
        if (not states or group.state.lower() in states) and (not types or group.type.lower() in types)
        if sees_all or sees(call, Operation.DESCRIBE, Resource.GROUP, group.group_id)
    )
    code = Code.coordinator_load_in_progress if loading else Code.none
    return call.reply(error_code=code, groups=await encoded(call, ("groups",), lines))


def _line(group: Group) -> dict[str, Any]:
    return {
        "group_id": group.group_id,
        "protocol_type": group.protocol_type,
        "group_state": group.state,
        "group_type": group.type,
    }
