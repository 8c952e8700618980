"""Online migration between the classic and the consumer protocol (KIP-848). Pure.

Upgrade: the first member of the consumer protocol joins a group of classic consumers. Downgrade: the last one leaves.
"""

from collections.abc import Callable, Collection
from typing import Any

from ottla.coordination.core.effects import Effects, Record, Reply, Write
from ottla.errors import Code, KafkaError
from ottla.group.classic.embedded_protocol import encode_assignment, read_assignment, read_subscription, version_of
from ottla.group.classic.group import ClassicGroup
from ottla.group.classic.member import Join, Joined
from ottla.group.classic.member import Member as OldMember
from ottla.group.classic.protocols import CONSUMER, chosen
from ottla.group.consumer.member import ClassicMember, Member, Partitions, Position, Subscription
from ottla.group.consumer.membership import ConsumerMembership
from ottla.group.consumer.records import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    Entry,
    GroupEpoch,
)
from ottla.metadata.model.image import Image
from ottla.metadata.model.topic_names import names_of_topics
from ottla.wire.reader import Malformed

__all__ = ["check_upgrade", "downgrade", "encoded", "may_downgrade", "refused_joins", "replaced_by_classic", "upgrade"]


def encoded(partitions: Partitions, image: Image, *, version: int) -> bytes:
    """An assignment in the classic format; deleted topics are omitted."""
    names = {topic.id.bytes: topic.name for topic in image.topics_by_id.values()} if partitions else {}
    by_name: dict[str, list[int]] = {}
    for topic_id, index in partitions:
        if topic_id in names:
            by_name.setdefault(names[topic_id], []).append(index)
    return encode_assignment(by_name, version=version)


# -- upgrade


def check_upgrade(classic: ClassicGroup, *, policy: str, members_max: int) -> None:
    """KafkaError: GROUP_ID_NOT_FOUND if the group cannot be upgraded."""
    problem = None
    if policy not in ("UPGRADE", "BIDIRECTIONAL"):
        problem = "online upgrade is disabled"
    elif classic.protocol_type != CONSUMER:
        problem = "the group does not use the consumer embedded protocol"
    elif len(classic.members) > members_max:
        problem = "the group size exceeds the consumer group maximum size"
    if problem is not None:
        raise KafkaError(
            Code.group_id_not_found,
            f"Cannot upgrade classic group {classic.group_id} to consumer group because {problem}.",
        )


def upgrade(classic: ClassicGroup, image: Image) -> list[Entry]:
    """The members and their assignments as entries of a consumer group. The generation becomes the epoch."""
    try:
        members = [_moved(member, classic, image) for member in classic.members.values()]
    except Malformed as error:
        raise KafkaError(
            Code.group_id_not_found,
            f"Cannot upgrade the classic group {classic.group_id} to consumer group: {error}.",
        ) from None
    key, epoch = (classic.group_id,), classic.generation
    entries = [Entry(MEMBER, (*key, each.id), each.subscription) for each in members]
    entries.append(Entry(GROUP_EPOCH, key, GroupEpoch(epoch)))
    entries += [Entry(TARGET_ASSIGNMENT, (*key, each.id), each.position.assigned) for each in members]
    entries.append(Entry(TARGET_EPOCH, key, epoch))
    entries += [Entry(CURRENT_ASSIGNMENT, (*key, each.id), each.position) for each in members]
    return entries


def _moved(old: OldMember, classic: ClassicGroup, image: Image) -> Member:
    # Before the first generation no protocol is chosen; a consumer's subscription is the same under every protocol.
    subscribed = read_subscription(old.metadata(classic.protocol_name or old.protocols[0][0]))
    given = read_assignment(old.assignment)
    if given.user_data:
        raise Malformed(
            "an unsupported custom assignor is in use, whose data would be lost; switch to a default assignor first"
        )
    assigned = frozenset(
        (image.topics[topic].id.bytes, index) for topic, index in given.partitions if topic in image.topics
    )
    subscription = Subscription(
        instance_id=old.instance_id,
        rack_id=subscribed.rack_id,
        client_id=old.client_id,
        client_host=old.client_host,
        topics=names_of_topics(subscribed.topics),
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        classic=ClassicMember(old.session_timeout_ms, old.protocols),
    )
    return Member(old.member_id, subscription, Position(classic.generation, classic.generation, assigned=assigned))


def refused_joins(classic: ClassicGroup) -> Effects:
    """Members that wait for a rebalance are refused, so that they rejoin and enter the new group."""
    return classic.refuse_waiting(Code.rebalance_in_progress)


# -- downgrade


def may_downgrade(group: ConsumerMembership, leaving: Collection[Member], *, staying: int = 0) -> bool:
    """Whether only classic members remain without these. `staying`: members that replace some of these."""
    left = len(group.log.members) - len(leaving)
    if any(member.uses_classic for member in leaving) or group.log.classic_members != left or left + staying == 0:
        return False
    return (
        group.rules.policy() in ("DOWNGRADE", "BIDIRECTIONAL") and left + staying <= group.rules.classic_members_max()
    )


def downgrade(
    group: ConsumerMembership,
    leaving: Collection[str],
    now: float,
    *,
    then: Callable[[Code, float], Effects],
    joining: Member | None = None,
) -> Write:
    """The group becomes a classic one. It rebalances, unless one member only replaced another."""
    classic = _as_classic(group, leaving, joining)
    records: list[Record] = [*group.tombstones(), classic.record(_assignments(classic))]

    def on_appended(offset: int) -> None:
        for member in classic.members.values():
            member.renew_session(now)
        effects: Effects = []
        if joining is None:
            reason = f"group {group.group_id} was downgraded to the classic protocol"
            classic.rebalance(reason, now, effects)
        group.rules.adopt(classic, effects + classic.tick(now))

    return Write(records, then, on_appended)


def _assignments(classic: ClassicGroup) -> dict[str, bytes]:
    return {member.member_id: member.assignment for member in classic.members.values()}


def _as_classic(group: ConsumerMembership, leaving: Collection[str], joining: Member | None) -> ClassicGroup:
    log, image = group.log, group.rules.image()
    staying = [member for each, member in log.members.items() if each not in leaving]
    members = [_old_member(member) for member in [*staying, *([joining] if joining else ())]]
    protocol = chosen(members)
    successor = next(iter(leaving)) if joining is not None else None
    for member in members:
        before = successor if joining is not None and member.member_id == joining.id else member.member_id
        version = version_of(member.metadata(protocol))
        member.assign(encoded(log.targets.get(before or "", frozenset()), image, version=version))
    classic = group.rules.new_classic_group(group.group_id)
    classic.restore(
        members,
        generation=log.epoch,
        protocol_type=CONSUMER,
        protocol_name=protocol,
        leader=None,
        since_ms=group.rules.wall_ms(),
    )
    return classic


def _old_member(member: Member) -> OldMember:
    subscription, classic = member.subscription, member.subscription.classic
    assert classic is not None
    return OldMember(
        member.id,
        instance_id=subscription.instance_id,
        client_id=subscription.client_id,
        client_host=subscription.client_host,
        session_timeout_ms=classic.session_timeout_ms,
        rebalance_timeout_ms=subscription.rebalance_timeout_ms,
        protocols=classic.protocols,
    )


def replaced_by_classic(group: ConsumerMembership, request: Join, to: Any, now: float) -> Effects:
    """A classic consumer joins a consumer group without members: a classic group replaces it."""
    classic = group.rules.new_classic_group(group.group_id)

    def on_appended(offset: int) -> None:
        group.rules.adopt(classic, classic.join(request, to, now))

    def then(code: Code, at: float) -> Effects:
        return [] if code is Code.none else [Reply(to, Joined(code, member_id=request.member_id))]

    return [Write(group.tombstones(), then, on_appended)]
