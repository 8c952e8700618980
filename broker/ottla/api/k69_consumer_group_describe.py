"""ConsumerGroupDescribe (KIP-848): epochs, members, their assignments and target assignments.

v1 which protocol a member uses (KIP-1099).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.group_description import described_groups, topics_with_names
from ottla.api.k68_consumer_group_heartbeat import check_served
from ottla.api.registry import api
from ottla.api.requests import ConsumerGroupDescribeRequest
from ottla.errors import Code
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.member import Member, Partitions
from ottla.group.coordinator import GroupCoordinator
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings

CLASSIC, CONSUMER = 0, 1


@api(key=69, versions=(0, 1))
async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest,
    call: Call,
    groups: GroupCoordinator,
    feed: MetadataFeed,
    settings: LiveSettings,
) -> Answer:
    def check(_: str) -> None:
        check_served(feed.image, settings)

    def member(group: ConsumerGroup, one: Member) -> dict[str, Any]:
        return _member(one, group.log.targets.get(one.id, frozenset()), feed.image)

    lines = await described_groups(
        request.group_ids,
        groups,
        ConsumerGroup,
        _group,
        member,
        check,
        call,
        image=feed.image,
        with_operations=request.include_authorized_operations,
    )
    return call.reply(groups=lines)


def _group(group: ConsumerGroup) -> dict[str, Any]:
    log = group.log
    return {
        "group_id": group.group_id,
        "error_code": Code.none,
        "group_state": group.state,
        "group_epoch": log.epoch,
        "assignment_epoch": log.target_epoch,
        "assignor_name": log.preferred_assignor() or group.terms.assignors[0],
    }


def _member(member: Member, target: Partitions, image: Image) -> dict[str, Any]:
    subscription, position = member.subscription, member.position
    return {
        "member_id": member.id,
        "instance_id": subscription.instance_id,
        "rack_id": subscription.rack_id,
        "member_epoch": position.epoch,
        "client_id": subscription.client_id,
        "client_host": subscription.client_host,
        "subscribed_topic_names": sorted(subscription.topics),
        "subscribed_topic_regex": subscription.regex,
        "assignment": {"topic_partitions": topics_with_names(position.assigned, image)},
        "target_assignment": {"topic_partitions": topics_with_names(target, image)},
        "member_type": CLASSIC if member.uses_classic else CONSUMER,
    }
