"""Common parts of the descriptions of groups (15, 69, 77)."""

import uuid
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

from ottla.api.authorizing import NOT_ASKED, operations_if, require, topic_access
from ottla.api.call import Call
from ottla.api.slices import encoded, encoded_or_refused, paced, until_committed
from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Partitions
from ottla.group.coordinator import GroupCoordinator
from ottla.group.heartbeats.entries import by_topic
from ottla.group.heartbeats.group import HeartbeatGroup
from ottla.group.shard import Shard
from ottla.metadata.model.image import Image
from ottla.security.core.access import Operation, Resource
from ottla.wire.writer import EncodedArray

__all__ = ["described_groups", "described_members", "topics_with_names"]

MEMBERS_AT_ONCE_MAX = 200

Each = TypeVar("Each")
Kind = TypeVar("Kind", bound=HeartbeatGroup[Any])


async def described_groups(
    group_ids: Sequence[str],
    groups: GroupCoordinator,
    kind: type[Kind],
    describe: Callable[[Kind], dict[str, Any]],
    member: Callable[[Kind, Any], dict[str, Any]],
    check: Callable[[str], None],
    call: Call,
    *,
    image: Image,
    with_operations: bool,
) -> EncodedArray:
    """The lines of the answer, each given when it is committed. In slices: a group may have very many members."""

    async def line(group_id: str) -> dict[str, Any]:
        check(group_id)
        require(call, Operation.DESCRIBE, Resource.GROUP, group_id)
        shard, group = _find(group_id, kind, groups)
        await _require_topics(group, call, image)
        made = partial(member, group)
        bits = operations_if(with_operations, call, Resource.GROUP, group_id)
        described = {
            **describe(group),
            "authorized_operations": bits,
            "members": await described_members(group.log.members.values(), made, call),
        }
        await until_committed(shard, group.written, call)
        return described

    return await encoded_or_refused(call, ("groups",), group_ids, line, refused=_refused, key=str)


async def _require_topics(group: HeartbeatGroup[Any], call: Call, image: Image) -> None:
    """A description tells of topics: who may not know of one is not told anything."""
    describable = topic_access(call, Operation.DESCRIBE, image)
    if describable is None:
        return
    async for member in paced(list(group.log.members.values()), call):
        target = group.log.targets.get(member.id, frozenset())
        named = {topic_id for topic_id, _ in (*member.position.assigned, *target)}
        if any(describable.refused(topic) is not None for topic in named):
            text = "The group has described topic(s) that the client is not authorized to describe."
            raise KafkaError(Code.topic_authorization_failed, text)


async def described_members(
    members: Collection[Each], describe: Callable[[Each], dict[str, Any]], call: Call
) -> EncodedArray | list[dict[str, Any]]:
    """Those of a group of common size are of one moment; many are described in slices."""
    if len(members) <= MEMBERS_AT_ONCE_MAX:
        return [describe(one) for one in members]
    return await encoded(call, ("groups", "members"), (describe(one) async for one in paced(list(members), call)))


def _find(group_id: str, kind: type[Kind], groups: GroupCoordinator) -> tuple[Shard, Kind]:
    """KafkaError when there is no such group of this kind."""
    shard = groups.shard_of(group_id)
    group = shard.groups.get(group_id)
    if not isinstance(group, kind):
        is_not = "not found" if group is None else f"is not a {kind.type} group"
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} {is_not}.")
    return shard, group


def _refused(group_id: str, error: KafkaError) -> dict[str, Any]:
    refused = {"error_code": error.code, "error_message": error.message, "authorized_operations": NOT_ASKED}
    return {"group_id": group_id, **refused}


def topics_with_names(partitions: Partitions, image: Image) -> list[dict[str, Any]]:
    """Deleted topics are omitted."""
    found = ((line, image.topics_by_id.get(uuid.UUID(bytes=line["topic_id"]))) for line in by_topic(partitions))
    return [line | {"topic_name": topic.name} for line, topic in found if topic is not None]
