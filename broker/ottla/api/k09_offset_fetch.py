"""OffsetFetch: where groups go on reading.

v2 all topics when null, an error for the whole · v5 leader epochs (KIP-320) · v6 flexible · v7 stable offsets only
(KIP-447) · v8 several groups at once (KIP-709) · v9 member epochs of KIP-848.
"""

from collections.abc import AsyncIterator, Hashable, Iterable
from typing import Any

from ottla.api.authorizing import require, sees, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic
from ottla.api.slices import encoded, encoded_or_refused, paced, until_committed
from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.group.offsets.committed import GroupOffsets, ShardOffsets
from ottla.group.offsets.records import CommittedOffset
from ottla.security.core.access import Operation, Resource
from ottla.wire.writer import EncodedArray

NOTHING = GroupOffsets()
SEVERAL_GROUPS_SINCE = 8

Asked = OffsetFetchRequest | OffsetFetchRequestGroup
Offsets = Iterable[tuple[int, CommittedOffset | None]]


@api(key=9, versions=(1, 9), elements_max=MANY_ELEMENTS_MAX)
async def offset_fetch(request: OffsetFetchRequest, call: Call, groups: GroupCoordinator) -> Answer:
    """In slices, however small the request: a group may have very many offsets."""
    if call.version >= SEVERAL_GROUPS_SINCE:
        return await _several(request, call, groups)
    stable = getattr(request, "require_stable", False)
    try:
        return call.reply(topics=await _topics(request, call, groups, ("topics",), stable=stable), error_code=Code.none)
    except KafkaError as error:
        call.forget_made()
        topics = [_refused(topic, error.code) for topic in request.topics or ()] if call.version < 2 else []
        return call.reply(topics=topics, error_code=error.code)


async def _several(request: OffsetFetchRequest, call: Call, groups: GroupCoordinator) -> Answer:
    path = ("groups",)

    async def line(asked: OffsetFetchRequestGroup) -> dict[str, Any]:
        topics = await _topics(asked, call, groups, (*path, "topics"), stable=request.require_stable)
        return {"group_id": asked.group_id, "topics": topics, "error_code": Code.none}

    return call.reply(
        groups=await encoded_or_refused(call, path, request.groups, line, refused=_refused_group, key=_key)
    )


def _key(asked: OffsetFetchRequestGroup) -> Hashable:
    """What makes two lines the same, where all topics are asked for."""
    if asked.topics is not None:
        return id(asked)
    return asked.group_id, getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1)


def _refused_group(asked: OffsetFetchRequestGroup, error: KafkaError) -> dict[str, Any]:
    return {"group_id": asked.group_id, "topics": [], "error_code": error.code}


async def _topics(
    asked: Asked, call: Call, groups: GroupCoordinator, path: tuple[str, ...], *, stable: bool
) -> EncodedArray:
    """Read, and hand it out when it is committed: what was read may be newer than that.

    `stable`: an offset that an undecided transaction may replace is refused (KIP-447).
    """
    require(call, Operation.DESCRIBE, Resource.GROUP, asked.group_id)
    describable = None if asked.topics is None else topic_access(call, Operation.DESCRIBE)
    shard = groups.shard_of(asked.group_id)
    group = shard.groups.get(asked.group_id)
    if group is not None:
        member_id, epoch = getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1)
        group.check_fetch(member_id=member_id, member_epoch=epoch)
    offsets = shard.offsets.get(asked.group_id) or NOTHING
    pending = shard.offsets if stable and shard.offsets.has_pending(asked.group_id) else None

    async def topics() -> AsyncIterator[dict[str, Any]]:
        async for name, partitions in paced(_wanted(asked, offsets), call):
            if asked.topics is None and not sees(call, Operation.DESCRIBE, Resource.TOPIC, name):
                continue
            refused = None if describable is None else describable.refused(name)
            found = (_found(asked.group_id, name, one, pending, refused) async for one in paced(partitions, call))
            yield {"name": name, "partitions": await encoded(call, (*path, "partitions"), found)}

    lines = await encoded(call, path, topics())
    await until_committed(shard, offsets.written, call)
    return lines


def _wanted(asked: Asked, offsets: GroupOffsets) -> Iterable[tuple[str, Offsets]]:
    """The lists are copies: others commit between two slices."""
    if asked.topics is None:
        for name, partitions in list(offsets.by_topic.items()):
            yield name, list(partitions.items())
    else:
        for topic in asked.topics:
            yield topic.name, ((index, offsets.get(topic.name, index)) for index in topic.partition_indexes)


def _found(
    group_id: str,
    topic: str,
    one: tuple[int, CommittedOffset | None],
    pending: ShardOffsets | None,
    refused: KafkaError | None,
) -> dict[str, Any]:
    index, committed = one
    if refused is not None:
        return _partition(index, None, refused.code)
    if pending is not None and pending.is_pending(group_id, topic, index):
        return _partition(index, None, Code.unstable_offset_commit)
    return _partition(index, committed)


def _partition(index: int, committed: CommittedOffset | None, code: Code = Code.none) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": -1 if committed is None else committed.offset,
        "committed_leader_epoch": -1 if committed is None else committed.leader_epoch,
        "metadata": "" if committed is None else committed.metadata,
        "error_code": code,
    }


def _refused(topic: OffsetFetchRequestTopic, code: Code) -> dict[str, Any]:
    return {"name": topic.name, "partitions": [_partition(index, None, code) for index in topic.partition_indexes]}
