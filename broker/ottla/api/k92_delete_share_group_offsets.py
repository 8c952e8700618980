"""DeleteShareGroupOffsets (KIP-932): an empty share group forgets topics, as if it had never read them."""

from typing import Any

from ottla.api.authorizing import TopicAccess, require, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DeleteShareGroupOffsetsRequest
from ottla.api.share_groups import ABSENT, share_group_of
from ottla.errors import Code
from ottla.group.coordinator import GroupCoordinator
from ottla.group.share.records import StatePartitions
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource


@api(key=92, versions=(0, 0))
async def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> Answer:
    require(call, Operation.DELETE, Resource.GROUP, request.group_id)
    readable = topic_access(call, Operation.READ)
    shard, group = share_group_of(request.group_id, feed.image, groups)
    names = [topic.topic_name for topic in request.topics]
    lines = [_line(name, group.log.states, feed.image, readable) for name in names]
    going = [line["topic_id"] for line in lines if line["error_code"] is Code.none]
    await groups.states.delete(shard, group, going)
    return call.reply(error_code=Code.none, responses=lines)


def _line(name: str, states: StatePartitions, image: Image, readable: TopicAccess | None) -> dict[str, Any]:
    if readable is not None and (error := readable.refused(name)) is not None:
        return {"topic_name": name, "error_code": error.code, "error_message": error.message}
    topic = image.topics.get(name)
    if topic is None:
        return {"topic_name": name, "error_code": Code.unknown_topic_or_partition, "error_message": ABSENT}
    if topic.id.bytes not in states.initialized and topic.id.bytes not in states.deleting:
        nothing = "There is no offset information to delete."
        return {"topic_name": name, "error_code": Code.unknown_topic_or_partition, "error_message": nothing}
    return {"topic_name": name, "topic_id": topic.id.bytes, "error_code": Code.none}
