"""Common parts of the APIs of share groups: whether they are enabled, and the group of a request."""

from ottla.errors import Code, KafkaError
from ottla.group.coordinator import GroupCoordinator
from ottla.group.shard import Shard
from ottla.group.share.group import ShareGroup
from ottla.metadata.decisions.features import SHARE_VERSION
from ottla.metadata.model.image import Image

__all__ = ["ABSENT", "check_shares_served", "share_group_of"]

ABSENT = "This server does not host this topic-partition."


def check_shares_served(image: Image) -> None:
    """UNSUPPORTED_VERSION until the fleet has finalized share.version: share groups are off by default, as in Kafka
    4.1."""
    if image.features.get(SHARE_VERSION, 0) < 1:
        raise KafkaError(
            Code.unsupported_version,
            "share.version 1 is not finalized: kafka-features upgrade --feature share.version=1",
        )


def share_group_of(group_id: str, image: Image, groups: GroupCoordinator) -> tuple[Shard, ShareGroup]:
    """KafkaError: INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, or a coordinator's error."""
    check_shares_served(image)
    shard = groups.shard_for_members(group_id)
    group = shard.groups.get(group_id)
    if group is None:
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} not found.")
    if not isinstance(group, ShareGroup):
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} is not a share group.")
    return shard, group
