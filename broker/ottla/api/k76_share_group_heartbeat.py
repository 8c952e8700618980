"""ShareGroupHeartbeat (KIP-932): join, stay, learn which partitions to take records from, leave.

v0 was of a preview that Kafka 4.1 no longer speaks.
"""

from ottla.api.authorizing import require, require_topics
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ShareGroupHeartbeatRequest
from ottla.api.share_groups import check_shares_served
from ottla.errors import Code
from ottla.group.coordinator import GroupCoordinator
from ottla.group.heartbeats.entries import by_topic
from ottla.group.share.heartbeat import ShareHeartbeat
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource


@api(key=76, versions=(1, 1))
async def share_group_heartbeat(
    request: ShareGroupHeartbeatRequest, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> Answer:
    check_shares_served(feed.image)
    require(call, Operation.READ, Resource.GROUP, request.group_id)
    require_topics(call, Operation.DESCRIBE, request.subscribed_topic_names or ())
    answer = await groups.share_heartbeat(_request(request, call))
    return call.reply(
        error_code=Code.none,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval=answer.heartbeat_interval_ms,
        assignment=None if answer.assigned is None else {"topic_partitions": by_topic(answer.assigned)},
    )


def _request(request: ShareGroupHeartbeatRequest, call: Call) -> ShareHeartbeat:
    return ShareHeartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        rack_id=request.rack_id,
        topics=None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names),
        client_id=call.client_id or "",
        client_host=f"/{call.client.host}",
    )
