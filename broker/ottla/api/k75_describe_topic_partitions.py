"""DescribeTopicPartitions: topics page by page, with eligible leader replicas (KIP-966)."""

from bisect import bisect_left
from typing import Any

from ottla.api.authorizing import may, operations, refusal, sees
from ottla.api.call import Answer, Call
from ottla.api.cluster_view import brokers_on, partition_line
from ottla.api.registry import api
from ottla.api.requests import DescribeTopicPartitionsCursor, DescribeTopicPartitionsRequest
from ottla.api.topic_making import is_legal_name
from ottla.config import BrokerConfig
from ottla.errors import Code
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource


@api(key=75, versions=(0, 0))
def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, call: Call, feed: MetadataFeed, config: BrokerConfig
) -> Answer:
    image = feed.image
    if request.cursor and not _is_sound(request.cursor, named := {topic.name for topic in request.topics}):
        refused = sorted(named or {request.cursor.topic_name})
        return call.reply(topics=[_refused(name) for name in refused], next_cursor=None)
    names, denied = _by_right(_names(request, image), call, is_named=bool(request.topics))
    first = request.cursor.partition_index if request.cursor else 0
    left = min(request.response_partition_limit, config["max.request.partition.size.limit"])
    live = frozenset(broker.id for broker in brokers_on(image, call.client.listener))
    topics = []
    for name in names:
        start = first if request.cursor and name == request.cursor.topic_name else 0
        if name not in image.topics:
            topics.append(_absent(name, call))
            continue
        total = len(image.topics[name].partitions)
        start = min(start, total)  # the topic may have been made again with fewer
        if left <= 0 and total:
            return call.reply(topics=topics + denied, next_cursor={"topic_name": name, "partition_index": start})
        end = min(total, start + left)
        topics.append(_topic(name, image, start, end, live) | _operations(name, call))
        left -= end - start
        if end < total:
            return call.reply(topics=topics + denied, next_cursor={"topic_name": name, "partition_index": end})
    return call.reply(topics=topics + denied, next_cursor=None)


def _is_sound(cursor: DescribeTopicPartitionsCursor, named: set[str]) -> bool:
    """As in Kafka. Among all topics that of the cursor may be missing: it may have been deleted since."""
    return cursor.partition_index >= 0 and (not named or cursor.topic_name in named)


def _refused(name: str) -> dict[str, Any]:
    return {"error_code": Code.invalid_request, "name": name, "is_internal": name in INTERNAL_TOPICS}


def _names(request: DescribeTopicPartitionsRequest, image: Image) -> list[str]:
    names = sorted({topic.name for topic in request.topics} or image.topics)
    return names[bisect_left(names, request.cursor.topic_name) :] if request.cursor else names


def _by_right(names: list[str], call: Call, *, is_named: bool) -> tuple[list[str], list[dict[str, Any]]]:
    """Topics that the client may know of, and refusals of others, if it named them."""
    if call.client.is_unrestricted:
        return names, []
    ask = may if is_named else sees
    allowed: list[str] = []
    denied: list[dict[str, Any]] = []
    for name in names:
        if ask(call, Operation.DESCRIBE, Resource.TOPIC, name):
            allowed.append(name)
        elif is_named:
            code = refusal(Operation.DESCRIBE, Resource.TOPIC, name).code
            denied.append({"error_code": code, "name": name, "is_internal": False})
    return allowed, denied


def _operations(name: str, call: Call) -> dict[str, int]:
    return {"topic_authorized_operations": operations(call, Resource.TOPIC, name)}


def _absent(name: str, call: Call) -> dict[str, Any]:
    code = Code.unknown_topic_or_partition if is_legal_name(name) else Code.invalid_topic_exception
    return {"error_code": code, "name": name, "is_internal": name in INTERNAL_TOPICS, **_operations(name, call)}


def _topic(name: str, image: Image, start: int, end: int, live: frozenset[int]) -> dict[str, Any]:
    topic = image.topics[name]
    return {
        "error_code": Code.none,
        "name": name,
        "topic_id": topic.id,
        "is_internal": name in INTERNAL_TOPICS,
        "partitions": [_partition(state, image, live) for state in topic.partitions[start:end]],
    }


def _partition(state: PartitionState, image: Image, live: frozenset[int]) -> dict[str, Any]:
    line = partition_line(image, state, leader_must_listen=live)
    return {
        "error_code": Code.none,  # as Kafka: a missing leader is no error here
        "partition_index": line.index,
        "leader_id": line.leader,
        "leader_epoch": line.leader_epoch,
        "replica_nodes": line.replicas,
        "isr_nodes": line.isr,
        "eligible_leader_replicas": state.elr,
        "last_known_elr": state.last_known_elr,
        "offline_replicas": line.offline,
    }
