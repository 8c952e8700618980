"""DescribeShareGroupOffsets (KIP-932): where the partitions of share groups begin, for tools."""

from collections.abc import Iterable, Sequence
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.sharing import check_shares_served
from ottla.errors import Code, KafkaError
from ottla.group.consumer_member import Partition, Partitions
from ottla.group.share_group import ShareGroup
from ottla.group.share_states import partitions_in
from ottla.share.messages import UNINITIALIZED, Summary

Outcomes = dict[Partition, Summary | KafkaError]
NO_TOPIC = bytes(16)


@api(key=90, versions=(0, 0))
async def describe_share_group_offsets(request: Any, call: Call) -> Answer:
    return call.reply(groups=[await _group(group, call) for group in request.groups])


async def _group(asked: Any, call: Call) -> dict[str, Any]:
    try:
        check_shares_served(call)
        if asked.topics is None:
            topics = await _all_topics(asked.group_id, call)
        else:
            topics = await _topics(asked.group_id, asked.topics, call)
    except KafkaError as error:
        return {"group_id": asked.group_id, "topics": [], "error_code": error.code, "error_message": error.message}
    return {"group_id": asked.group_id, "topics": topics, "error_code": Code.none}


async def _all_topics(group_id: str, call: Call) -> list[dict[str, Any]]:
    """Of a group that does not exist: none."""
    shard = call.node.groups.shard_of(group_id)
    group = shard.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return []
    await shard.until_committed(group.written)
    partitions = partitions_in(group.log.states.initialized)
    names = {topic.id.bytes: topic.name for topic in call.node.image.topics.values()}
    outcomes = await call.node.groups.states.summaries(group_id, partitions)
    return [
        _line(names[topic_id], topic_id, sorted(index for topic, index in partitions if topic == topic_id), outcomes)
        for topic_id in sorted({topic_id for topic_id, _ in partitions})
        if topic_id in names
    ]


async def _topics(group_id: str, asked: Sequence[Any], call: Call) -> list[dict[str, Any]]:
    ids = {topic.topic_name: _id(topic.topic_name, call) for topic in asked}
    partitions: Partitions = frozenset(
        (known, index) for topic in asked if (known := ids[topic.topic_name]) is not None for index in topic.partitions
    )
    outcomes = await call.node.groups.states.summaries(group_id, partitions)
    return [
        _unknown(topic) if known is None else _line(topic.topic_name, known, topic.partitions, outcomes)
        for topic in asked
        for known in (ids[topic.topic_name],)
    ]


def _id(name: str, call: Call) -> bytes | None:
    topic = call.node.image.topics.get(name)
    return None if topic is None else topic.id.bytes


def _line(name: str, topic_id: bytes, indexes: Iterable[int], outcomes: Outcomes) -> dict[str, Any]:
    partitions = [_partition(index, outcomes[topic_id, index]) for index in indexes]
    return {"topic_name": name, "topic_id": topic_id, "partitions": partitions}


def _partition(index: int, outcome: Summary | KafkaError) -> dict[str, Any]:
    if isinstance(outcome, KafkaError):
        told = {"start_offset": UNINITIALIZED, "leader_epoch": 0, "error_code": outcome.code}
        return {"partition_index": index, **told, "error_message": outcome.message}
    told = {"start_offset": outcome.start, "leader_epoch": outcome.leader_epoch, "error_code": Code.none}
    return {"partition_index": index, **told}


def _unknown(topic: Any) -> dict[str, Any]:
    """Kafka 4.1 tells of no error: only that nothing has begun."""
    return _line(topic.topic_name, NO_TOPIC, topic.partitions, {(NO_TOPIC, at): Summary() for at in topic.partitions})
