"""SyncGroup: the leader brings the assignment, every member is answered with its share.

v3 static members (KIP-345) · v4 flexible · v5 protocol type and name (KIP-559).
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import MOST_BYTES_MAX, api
from ottla.api.requests import SyncGroupRequest
from ottla.errors import Code, KafkaError
from ottla.group.classic.member import Sync
from ottla.group.coordinator import GroupCoordinator

PROTOCOL_SINCE = 5


@api(key=14, versions=(0, 5), bytes_max=MOST_BYTES_MAX)
async def sync_group(request: SyncGroupRequest, call: Call, groups: GroupCoordinator) -> Answer:
    if call.version >= PROTOCOL_SINCE and not (request.protocol_type and request.protocol_name):
        raise KafkaError(Code.inconsistent_group_protocol)
    synced = await groups.sync(request.group_id, _request(request))
    return call.reply(
        error_code=synced.code,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol_name,
        assignment=synced.assignment,
    )


def _request(request: SyncGroupRequest) -> Sync:
    return Sync(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=[(one.member_id, one.assignment) for one in request.assignments],
    )
