"""What the requests have in common that change where a share group begins."""

from ottla.api.call import Call
from ottla.api.sharing import check_shares_served
from ottla.errors import Code, KafkaError
from ottla.group.shard import Shard
from ottla.group.share.group import ShareGroup

__all__ = ["ABSENT", "share_group_of"]

ABSENT = "This server does not host this topic-partition."


def share_group_of(group_id: str, call: Call) -> tuple[Shard, ShareGroup]:
    """KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, or what a coordinator says."""
    check_shares_served(call)
    shard = call.node.groups.shard_for_members(group_id)
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} is not a share group.")
    return shard, group
