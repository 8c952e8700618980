"""What the descriptions of groups that live by heartbeats have in common (69, 77)."""

from collections.abc import Callable
from typing import Any, TypeVar

from ottla.api.call import Call
from ottla.errors import Code, KafkaError
from ottla.group.heartbeat_group import HeartbeatGroup

__all__ = ["described_group"]

Kind = TypeVar("Kind", bound=HeartbeatGroup[Any])


async def described_group(
    group_id: str, kind: type[Kind], describe: Callable[[Kind, Call], dict[str, Any]], call: Call
) -> dict[str, Any]:
    """One line of the answer, told when it is committed. KafkaError when there is no such group of this kind."""
    shard = call.node.groups.shard_of(group_id)
    group = shard.groups.get(group_id)
    if not isinstance(group, kind):
        is_not = "not found" if group is None else f"is not a {kind.type} group"
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} {is_not}.")
    described = describe(group, call)
    await shard.until_committed(group.written)
    return described
