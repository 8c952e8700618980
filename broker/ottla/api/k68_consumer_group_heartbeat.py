"""ConsumerGroupHeartbeat (KIP-848): join, stay, take and give up partitions, leave.

v1 regular expressions; members choose their own ids (KIP-1082).
"""

import asyncio
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.heartbeat import Heartbeat, HeartbeatAnswer, check, heartbeat
from ottla.group.consumer.joining import group_for
from ottla.group.contract.group import Group
from ottla.group.heartbeats.entries import by_topic, partitions_of


@api(key=68, versions=(0, 1), pipelined=True)
async def consumer_group_heartbeat(request: Any, call: Call) -> Answer:
    check_served(call)
    asked = _request(request, call)
    shard = call.node.groups.shard_of(asked.group_id)
    check(asked, shard.consumer_rules.terms(asked.group_id))
    if expressions := _expressions(shard.groups.get(asked.group_id), asked):
        await call.node.groups.regexes.resolve(expressions)
        shard = call.node.groups.shard_of(asked.group_id)
    group, moved = group_for(asked, shard.groups.get(asked.group_id), shard.consumer_rules)
    answered: asyncio.Future[HeartbeatAnswer | Code] = asyncio.get_running_loop().create_future()
    shard.perform(group, heartbeat(group, asked, answered, shard.clock.monotonic(), moved=moved))
    answer = await answered
    if isinstance(answer, Code):
        raise KafkaError(answer)
    await shard.until_committed(group.written)
    return call.reply(
        error_code=Code.none,
        member_id=answer.member_id,
        member_epoch=answer.member_epoch,
        heartbeat_interval=answer.heartbeat_interval_ms,
        assignment=None if answer.assigned is None else {"topic_partitions": by_topic(answer.assigned)},
    )


def _expressions(group: Group | None, asked: Heartbeat) -> list[str]:
    """All that the group will want to know the topics of."""
    known = list(group.log.regexes) if isinstance(group, ConsumerGroup) else []
    return [*known, asked.regex] if asked.regex else known


def check_served(call: Call) -> None:
    """UNSUPPORTED_VERSION until the fleet has finalized the protocol."""
    finalized = call.node.image.features.get("group.version", 0) >= 1
    if not finalized or "consumer" not in call.node.settings.broker("group.coordinator.rebalance.protocols"):
        raise KafkaError(Code.unsupported_version, "group.version 1 is not finalized: kafka-features upgrade")


def _request(request: Any, call: Call) -> Heartbeat:
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
        client_host=f"/{call.host}",
    )
