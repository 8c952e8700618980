"""DescribeShareGroupOffsets (KIP-932): where the partitions of share groups begin, for tools."""

import uuid
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from ottla.api.authorizing import require, sees, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from ottla.api.share_groups import check_shares_served
from ottla.api.slices import encoded_or_refused, until_committed
from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Partition, Partitions
from ottla.group.coordinator import GroupCoordinator
from ottla.group.persisting import StateReconciler
from ottla.group.share.group import ShareGroup
from ottla.group.share.initialization import partitions_in
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource
from ottla.share.core.messages import UNINITIALIZED, Summary

Outcomes = dict[Partition, Summary | KafkaError]
NO_TOPIC = bytes(16)


@api(key=90, versions=(0, 0))
async def describe_share_group_offsets(
    request: DescribeShareGroupOffsetsRequest, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> Answer:
    """In slices, however small the request: a group may have very many partitions."""

    async def line(asked: DescribeShareGroupOffsetsRequestGroup) -> dict[str, Any]:
        return await _group(asked, call, groups, feed)

    return call.reply(
        groups=await encoded_or_refused(call, ("groups",), request.groups, line, refused=_refused, key=_key)
    )


def _key(asked: DescribeShareGroupOffsetsRequestGroup) -> Hashable:
    """What makes two lines the same, where all topics are asked for."""
    return asked.group_id if asked.topics is None else id(asked)


def _refused(asked: DescribeShareGroupOffsetsRequestGroup, error: KafkaError) -> dict[str, Any]:
    return {"group_id": asked.group_id, "topics": [], "error_code": error.code, "error_message": error.message}


async def _group(
    asked: DescribeShareGroupOffsetsRequestGroup, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> dict[str, Any]:
    check_shares_served(feed.image)
    require(call, Operation.DESCRIBE, Resource.GROUP, asked.group_id)
    if asked.topics is None:
        topics = await _all_topics(asked.group_id, call, groups, feed)
    else:
        topics = await _topics_by_right(asked.group_id, asked.topics, call, groups.states, feed.image)
    return {"group_id": asked.group_id, "topics": topics, "error_code": Code.none}


async def _all_topics(group_id: str, call: Call, groups: GroupCoordinator, feed: MetadataFeed) -> list[dict[str, Any]]:
    """Of a group that does not exist: none."""
    shard = groups.shard_of(group_id)
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return []
    await until_committed(shard, group.written, call)
    partitions = partitions_in(group.log.states.initialized)
    outcomes = await groups.states.summaries(group_id, partitions)
    indexes: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        indexes.setdefault(topic_id, []).append(index)
    known = feed.image.topics_by_id
    return [
        _line(topic.name, topic_id, of_topic, outcomes)
        for topic_id, of_topic in indexes.items()
        if (topic := known.get(uuid.UUID(bytes=topic_id))) is not None
        and sees(call, Operation.DESCRIBE, Resource.TOPIC, topic.name)
    ]


async def _topics_by_right(
    group_id: str,
    asked: Sequence[DescribeShareGroupOffsetsRequestTopic],
    call: Call,
    states: StateReconciler,
    image: Image,
) -> list[dict[str, Any]]:
    describable = topic_access(call, Operation.DESCRIBE)
    if describable is None:
        return await _topics(group_id, asked, states, image)
    refusals = {topic.topic_name: describable.refused(topic.topic_name) for topic in asked}
    found = await _topics(group_id, [one for one in asked if refusals[one.topic_name] is None], states, image)
    denied = ((one, refusals[one.topic_name]) for one in asked)
    return found + [_denied(one, error) for one, error in denied if error is not None]


def _denied(topic: DescribeShareGroupOffsetsRequestTopic, error: KafkaError) -> dict[str, Any]:
    return _line(
        topic.topic_name, NO_TOPIC, topic.partitions, dict.fromkeys(((NO_TOPIC, i) for i in topic.partitions), error)
    )


async def _topics(
    group_id: str, asked: Sequence[DescribeShareGroupOffsetsRequestTopic], states: StateReconciler, image: Image
) -> list[dict[str, Any]]:
    ids = {topic.topic_name: _id(topic.topic_name, image) for topic in asked}
    partitions: Partitions = frozenset(
        (known, index) for topic in asked if (known := ids[topic.topic_name]) is not None for index in topic.partitions
    )
    outcomes = await states.summaries(group_id, partitions)
    return [
        _unknown(topic) if known is None else _line(topic.topic_name, known, topic.partitions, outcomes)
        for topic in asked
        for known in (ids[topic.topic_name],)
    ]


def _id(name: str, image: Image) -> bytes | None:
    topic = image.topics.get(name)
    return None if topic is None else topic.id.bytes


def _line(name: str, topic_id: bytes, indexes: Iterable[int], outcomes: Outcomes) -> dict[str, Any]:
    partitions = [_partition(index, outcomes[topic_id, index]) for index in indexes]
    return {"topic_name": name, "topic_id": topic_id, "partitions": partitions}


def _partition(index: int, outcome: Summary | KafkaError) -> dict[str, Any]:
    if isinstance(outcome, KafkaError):
        fields = {"start_offset": UNINITIALIZED, "leader_epoch": 0, "error_code": outcome.code}
        return {"partition_index": index, **fields, "error_message": outcome.message}
    fields = {"start_offset": outcome.start, "leader_epoch": outcome.leader_epoch, "error_code": Code.none}
    return {"partition_index": index, **fields}


def _unknown(topic: DescribeShareGroupOffsetsRequestTopic) -> dict[str, Any]:
    """Kafka 4.1 reports no error here: only that nothing has begun."""
    return _line(topic.topic_name, NO_TOPIC, topic.partitions, {(NO_TOPIC, at): Summary() for at in topic.partitions})
