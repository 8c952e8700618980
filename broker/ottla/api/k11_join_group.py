"""JoinGroup: a member comes, and is answered when its group has come together.

v1 rebalance timeout · v4 a new member is given an id first (KIP-394) · v5 static members (KIP-345) · v6 flexible · v7
protocol type · v8 reason (KIP-800) · v9 a returning leader may skip the assignment (KIP-814).
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import MOST_BYTES_MAX, api
from ottla.api.requests import JoinGroupRequest
from ottla.errors import KafkaError
from ottla.group.classic.member import REASON_CHARACTERS_MAX, Join, Joined
from ottla.group.coordinator import GroupCoordinator

NULL_PROTOCOL_SINCE = 7


@api(key=11, versions=(0, 9), bytes_max=MOST_BYTES_MAX)
async def join_group(request: JoinGroupRequest, call: Call, groups: GroupCoordinator) -> Answer:
    try:
        joined = await groups.join(request.group_id, _request(request, call))
    except KafkaError as error:
        joined = Joined(error.code, member_id=request.member_id)
    return _reply(joined, call)


def _request(request: JoinGroupRequest, call: Call) -> Join:
    rebalance_ms = request.session_timeout if request.rebalance_timeout < 0 else request.rebalance_timeout
    return Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.client_id or "",
        client_host=f"/{call.client.host}",
        session_timeout_ms=request.session_timeout,
        rebalance_timeout_ms=rebalance_ms,
        protocol_type=request.protocol_type,
        protocols=tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        needs_known_id=call.version >= 4,
        may_skip_assignment=call.version >= 9,
        reason=request.reason and request.reason[:REASON_CHARACTERS_MAX],
    )


def _reply(joined: Joined, call: Call) -> Answer:
    no_protocol = None if call.version >= NULL_PROTOCOL_SINCE else ""
    return call.reply(
        error_code=joined.code,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name if joined.protocol_name is not None else no_protocol,
        leader=joined.leader,
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
            for member_id, instance_id, metadata in joined.members
        ],
    )
