"""AlterShareGroupOffsets (KIP-932): an empty share group begins elsewhere; what it had delivered is forgotten."""

from typing import Any

from ottla.api.authorizing import TopicAccess, require, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestTopic
from ottla.api.share_groups import ABSENT, share_group_of
from ottla.errors import Code
from ottla.group.consumer.member import Partition
from ottla.group.coordinator import GroupCoordinator
from ottla.metadata.model.state import Topic
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource


@api(key=91, versions=(0, 0))
async def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> Answer:
    require(call, Operation.READ, Resource.GROUP, request.group_id)
    readable = topic_access(call, Operation.READ)
    shard, group = share_group_of(request.group_id, feed.image, groups)
    topics = {
        topic.topic_name: feed.image.topics.get(topic.topic_name)
        for topic in request.topics
        if readable is None or readable.refused(topic.topic_name) is None
    }
    starts: dict[Partition, int] = {
        (known.id.bytes, one.partition_index): one.start_offset
        for topic in request.topics
        if (known := topics.get(topic.topic_name)) is not None
        for one in topic.partitions
        if _exists(known, one.partition_index)
    }
    outcomes = await groups.states.alter(shard, group, starts)
    lines = [
        _topic(topic, topics[topic.topic_name], outcomes) if topic.topic_name in topics else _denied(topic, readable)
        for topic in request.topics
    ]
    return call.reply(error_code=Code.none, responses=lines)


def _denied(asked: AlterShareGroupOffsetsRequestTopic, readable: TopicAccess | None) -> dict[str, Any]:
    error = readable.refused(asked.topic_name) if readable is not None else None
    assert error is not None
    fields = {"error_code": error.code, "error_message": error.message}
    lines = [{"partition_index": one.partition_index, **fields} for one in asked.partitions]
    return {"topic_name": asked.topic_name, "topic_id": None, "partitions": lines}


def _exists(topic: Topic, index: int) -> bool:
    return 0 <= index < len(topic.partitions)


def _topic(
    asked: AlterShareGroupOffsetsRequestTopic, known: Topic | None, outcomes: dict[Partition, Code]
) -> dict[str, Any]:
    topic_id = None if known is None else known.id.bytes
    absent = Code.unknown_topic_or_partition
    codes = {
        one.partition_index: absent if topic_id is None else outcomes.get((topic_id, one.partition_index), absent)
        for one in asked.partitions
    }
    partitions = [
        {
            "partition_index": index,
            "error_code": code,
            "error_message": None
            if code is Code.none
            else ABSENT
            if code is Code.unknown_topic_or_partition
            else code.name,
        }
        for index, code in codes.items()
    ]
    return {"topic_name": asked.topic_name, "topic_id": topic_id, "partitions": partitions}
