"""ConsumerGroupHeartbeat (KIP-848): join, stay, take and give up partitions, leave.

v1 regular expressions; members choose their own ids (KIP-1082).
"""

from functools import partial

from ottla.api.authorizing import require, require_topics, sees
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ConsumerGroupHeartbeatRequest
from ottla.errors import Code, KafkaError
from ottla.group.consumer.heartbeat import Heartbeat
from ottla.group.coordinator import GroupCoordinator
from ottla.group.heartbeats.entries import by_topic, partitions_of
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import Operation, Resource


@api(key=68, versions=(0, 1), pipelined=True)
async def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest,
    call: Call,
    groups: GroupCoordinator,
    feed: MetadataFeed,
    settings: LiveSettings,
) -> Answer:
    check_served(feed.image, settings)
    require(call, Operation.READ, Resource.GROUP, request.group_id)
    require_topics(call, Operation.DESCRIBE, request.subscribed_topic_names or ())
    may_describe = partial(sees, call, Operation.DESCRIBE, Resource.TOPIC)
    answer = await groups.consumer_heartbeat(_request(request, call), may_describe)
    return call.reply(
        error_code=Code.none,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval=answer.heartbeat_interval_ms,
        assignment=None if answer.assigned is None else {"topic_partitions": by_topic(answer.assigned)},
    )


def check_served(image: Image, settings: LiveSettings) -> None:
    """UNSUPPORTED_VERSION until the fleet has finalized the protocol."""
    finalized = image.features.get("group.version", 0) >= 1
    if not finalized or "consumer" not in settings.broker("group.coordinator.rebalance.protocols"):
        raise KafkaError(Code.unsupported_version, "group.version 1 is not finalized: kafka-features upgrade")


def _request(request: ConsumerGroupHeartbeatRequest, call: Call) -> Heartbeat:
    return Heartbeat(
        version=call.version,
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout,
        topics=None if request.subscribed_topic_names is None else frozenset(request.subscribed_topic_names),
        regex=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else partitions_of(request.topic_partitions),
        client_id=call.client_id or "",
        client_host=f"/{call.client.host}",
    )
