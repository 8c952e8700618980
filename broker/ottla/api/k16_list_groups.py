"""ListGroups: the groups that this broker coordinates. v3 flexible · v4 by state (KIP-518) · v5 by type (KIP-848)."""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code


@api(key=16, versions=(0, 5))
def list_groups(request: Any, call: Call) -> Answer:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    lines = [
        {
            "group_id": group.group_id,
            "protocol_type": group.protocol_type,
            "group_state": group.state,
            "group_type": group.type,
        }
        for shard in call.node.groups.shards
        for group in shard.groups.values()
        if (not states or group.state.lower() in states) and (not types or group.type.lower() in types)
    ]
    loading = any(shard.loading for shard in call.node.groups.shards)
    return call.reply(error_code=Code.coordinator_load_in_progress if loading else Code.none, groups=lines)
