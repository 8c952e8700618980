"""ShareGroupDescribe (KIP-932): epochs, members and what they have.

v0 was of a preview that Kafka 4.1 no longer speaks.
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.group_description import described_group
from ottla.api.k69_consumer_group_describe import topics_with_names
from ottla.api.registry import api
from ottla.api.sharing import check_shares_served
from ottla.errors import Code, KafkaError
from ottla.group.consumer_member import Member
from ottla.group.share_group import ShareGroup


@api(key=77, versions=(1, 1))
async def share_group_describe(request: Any, call: Call) -> Answer:
    return call.reply(groups=[await _described(group_id, call) for group_id in request.group_ids])


async def _described(group_id: str, call: Call) -> dict[str, Any]:
    try:
        check_shares_served(call)
        if not group_id:
            raise KafkaError(Code.invalid_group_id)
        return await described_group(group_id, ShareGroup, _group, call)
    except KafkaError as error:
        return {"group_id": group_id, "error_code": error.code, "error_message": error.message}


def _group(group: ShareGroup, call: Call) -> dict[str, Any]:
    log = group.log
    names = {topic.id.bytes: topic.name for topic in call.node.image.topics.values()}
    return {
        "group_id": group.group_id,
        "error_code": Code.none,
        "group_state": group.state,
        "group_epoch": log.epoch,
        "assignment_epoch": log.target_epoch,
        "assignor_name": group.terms.assignor,
        "members": [_member(each, names) for each in log.members.values()],
    }


def _member(member: Member, names: dict[bytes, str]) -> dict[str, Any]:
    subscription, position = member.subscription, member.position
    return {
        "member_id": member.id,
        "rack_id": subscription.rack_id,
        "member_epoch": position.epoch,
        "client_id": subscription.client_id,
        "client_host": subscription.client_host,
        "subscribed_topic_names": sorted(subscription.topics),
        "assignment": {"topic_partitions": topics_with_names(position.assigned, names)},
    }
