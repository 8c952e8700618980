"""OffsetDelete: a group's offsets of topics that none of its members consumes (KIP-496)."""

from ottla.api.authorizing import require, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import OffsetDeleteRequest
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource


@api(key=47, versions=(0, 0))
async def offset_delete(
    request: OffsetDeleteRequest, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> Answer:
    require(call, Operation.DELETE, Resource.GROUP, request.group_id)
    readable = topic_access(call, Operation.READ)
    shard = groups.shard_of(request.group_id)
    group = shard.groups.get(request.group_id)
    if group is None:
        raise KafkaError(Code.group_id_not_found)
    group.check_offset_delete()
    image, gone, lines = feed.image, [], []
    for topic in request.topics:
        known = image.topics.get(topic.name)
        denied = None if readable is None else readable.refused(topic.name)
        consumed = group.is_subscribed(topic.name)
        partitions = []
        for one in topic.partitions:
            exists = known is not None and 0 <= one.partition_index < len(known.partitions)
            code = Code.none if exists else Code.unknown_topic_or_partition
            code = Code.group_subscribed_to_topic if exists and consumed else code
            code = code if denied is None else denied.code
            partitions.append({"partition_index": one.partition_index, "error_code": code})
            offsets = shard.offsets.get(request.group_id)
            if code is Code.none and offsets is not None and offsets.get(topic.name, one.partition_index) is not None:
                gone.append((topic.name, one.partition_index))
        lines.append({"name": topic.name, "partitions": partitions})
    if gone:
        await shard.until_committed(shard.delete_offsets(group.group_id, gone))
    return call.reply(error_code=Code.none, topics=lines)
