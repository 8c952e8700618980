"""OffsetFetch: where groups go on reading.

v2 all topics when null, an error for the whole · v5 leader epochs (KIP-320) · v6 flexible · v7 stable offsets only
(KIP-447) · v8 several groups at once (KIP-709) · v9 member epochs of KIP-848.
"""

from collections.abc import Callable
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.errors import Code, KafkaError
from ottla.group.offset_records import CommittedOffset
from ottla.group.offsets import GroupOffsets

NOTHING = GroupOffsets()
SEVERAL_GROUPS_SINCE = 8


@api(key=9, versions=(1, 9), elements_max=MANY_ELEMENTS_MAX)
async def offset_fetch(request: Any, call: Call) -> Answer:
    if call.version >= SEVERAL_GROUPS_SINCE:
        stable = request.require_stable
        return call.reply(groups=[await _group(group, call, stable=stable) for group in request.groups])
    result = await _group(request, call, stable=getattr(request, "require_stable", False))
    code = result["error_code"]
    if code and call.version < 2:
        result["topics"] = [_refused(topic, code) for topic in request.topics]
    return call.reply(topics=result["topics"], error_code=code)


async def _group(asked: Any, call: Call, *, stable: bool) -> dict[str, Any]:
    try:
        topics = await _topics(asked, call, stable=stable)
    except KafkaError as error:
        return {"group_id": asked.group_id, "topics": [], "error_code": error.code}
    return {"group_id": asked.group_id, "topics": topics, "error_code": Code.none}


async def _topics(asked: Any, call: Call, *, stable: bool) -> list[dict[str, Any]]:
    """Read, and hand it out when it is committed: what was read may be newer than that.

    `stable`: an offset that an undecided transaction may replace is not told (KIP-447).
    """
    shard = call.node.groups.shard_of(asked.group_id)
    group = shard.groups.get(asked.group_id)
    if group is not None:
        member_id, epoch = getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1)
        group.check_fetch(member_id=member_id, member_epoch=epoch)
    offsets = shard.offsets.get(asked.group_id, NOTHING)
    if asked.topics is None:
        lines = [_line(topic, list(partitions.items())) for topic, partitions in offsets.by_topic.items()]
    else:
        lines = [_line(t.name, [(i, offsets.get(t.name, i)) for i in t.partition_indexes]) for t in asked.topics]
    if stable and shard.pending.has_group(asked.group_id):
        lines = [
            _stable(line, lambda topic, index: shard.pending.concerns(asked.group_id, topic, index)) for line in lines
        ]
    await shard.until_committed(offsets.written)
    return lines


def _stable(line: dict[str, Any], is_pending: Callable[[str, int], bool]) -> dict[str, Any]:
    topic = line["name"]
    return {
        "name": topic,
        "partitions": [
            _partition(one["partition_index"], None, Code.unstable_offset_commit)
            if is_pending(topic, one["partition_index"])
            else one
            for one in line["partitions"]
        ],
    }


def _line(topic: str, partitions: list[tuple[int, CommittedOffset | None]]) -> dict[str, Any]:
    return {"name": topic, "partitions": [_partition(index, committed) for index, committed in partitions]}


def _partition(index: int, committed: CommittedOffset | None, code: Code = Code.none) -> dict[str, Any]:
    return {
        "partition_index": index,
        "committed_offset": -1 if committed is None else committed.offset,
        "committed_leader_epoch": -1 if committed is None else committed.leader_epoch,
        "metadata": "" if committed is None else committed.metadata,
        "error_code": code,
    }


def _refused(topic: Any, code: Code) -> dict[str, Any]:
    return {"name": topic.name, "partitions": [_partition(index, None, code) for index in topic.partition_indexes]}
