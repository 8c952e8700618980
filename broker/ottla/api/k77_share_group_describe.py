"""ShareGroupDescribe (KIP-932): epochs, members and what they have.

v0 was of a preview that Kafka 4.1 no longer speaks.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.group_description import described_groups, topics_with_names
from ottla.api.registry import api
from ottla.api.requests import ShareGroupDescribeRequest
from ottla.api.share_groups import check_shares_served
from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import Member
from ottla.group.coordinator import GroupCoordinator
from ottla.group.share.group import ShareGroup
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.feed import MetadataFeed


@api(key=77, versions=(1, 1))
async def share_group_describe(
    request: ShareGroupDescribeRequest, call: Call, groups: GroupCoordinator, feed: MetadataFeed
) -> Answer:
    def check(group_id: str) -> None:
        check_shares_served(feed.image)
        if not group_id:
            raise KafkaError(Code.invalid_group_id)

    def member(_: ShareGroup, one: Member) -> dict[str, Any]:
        return _member(one, feed.image)

    lines = await described_groups(
        request.group_ids,
        groups,
        ShareGroup,
        _group,
        member,
        check,
        call,
        image=feed.image,
        with_operations=request.include_authorized_operations,
    )
    return call.reply(groups=lines)


def _group(group: ShareGroup) -> dict[str, Any]:
    log = group.log
    return {
        "group_id": group.group_id,
        "error_code": Code.none,
        "group_state": group.state,
        "group_epoch": log.epoch,
        "assignment_epoch": log.target_epoch,
        "assignor_name": group.terms.assignor,
    }


def _member(member: Member, image: Image) -> dict[str, Any]:
    subscription, position = member.subscription, member.position
    return {
        "member_id": member.id,
        "rack_id": subscription.rack_id,
        "member_epoch": position.epoch,
        "client_id": subscription.client_id,
        "client_host": subscription.client_host,
        "subscribed_topic_names": sorted(subscription.topics),
        "assignment": {"topic_partitions": topics_with_names(position.assigned, image)},
    }
