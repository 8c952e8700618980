"""ConsumerGroupDescribe (KIP-848): epochs, members, what they have and what they shall have.

v1 which protocol a member uses (KIP-1099).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.group_description import described_group
from ottla.api.k68_consumer_group_heartbeat import check_served
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.group.consumer_group import ConsumerGroup
from ottla.group.consumer_member import Member, Partitions
from ottla.group.entries import by_topic

CLASSIC, CONSUMER = 0, 1


@api(key=69, versions=(0, 1))
async def consumer_group_describe(request: Any, call: Call) -> Answer:
    return call.reply(groups=[await _described(group_id, call) for group_id in request.group_ids])


async def _described(group_id: str, call: Call) -> dict[str, Any]:
    try:
        check_served(call)
        return await described_group(group_id, ConsumerGroup, _group, call)
    except KafkaError as error:
        return {"group_id": group_id, "error_code": error.code, "error_message": error.message}


def _group(group: ConsumerGroup, call: Call) -> dict[str, Any]:
    log = group.log
    names = {topic.id.bytes: topic.name for topic in call.node.image.topics.values()}
    return {
        "group_id": group.group_id,
        "error_code": Code.none,
        "group_state": group.state,
        "group_epoch": log.epoch,
        "assignment_epoch": log.target_epoch,
        "assignor_name": log.preferred_assignor() or group.terms.assignors[0],
        "members": [_member(each, log.targets.get(each.id, frozenset()), names) for each in log.members.values()],
    }


def _member(member: Member, target: Partitions, names: dict[bytes, str]) -> dict[str, Any]:
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
        "assignment": {"topic_partitions": topics_with_names(position.assigned, names)},
        "target_assignment": {"topic_partitions": topics_with_names(target, names)},
        "member_type": CLASSIC if member.uses_classic else CONSUMER,
    }


def topics_with_names(partitions: Partitions, names: dict[bytes, str]) -> list[dict[str, Any]]:
    """Topics that are gone are left out."""
    return [
        line | {"topic_name": names[line["topic_id"]]} for line in by_topic(partitions) if line["topic_id"] in names
    ]
