"""Members of a consumer group that still use the classic protocol, while the group migrates (KIP-848). Pure.

The coordinator assigns partitions, so such a member sees a group that another member leads: JoinGroup returns the next
epoch as the generation, SyncGroup the member's assignment in that epoch, Heartbeat tells it when to rejoin.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from ottla.coordination.core.effects import Effects, Reply, Wake
from ottla.errors import Code, KafkaError
from ottla.group.classic.embedded_protocol import EmbeddedSubscription, read_subscription, version_of
from ottla.group.classic.member import Join, Joined, Leave, Left, Sync, Synced
from ottla.group.classic.protocols import CONSUMER
from ottla.group.consumer import migration
from ottla.group.consumer.advance import advance
from ottla.group.consumer.member import ClassicMember, Member, MemberState, Partitions
from ottla.group.consumer.membership import ConsumerMembership
from ottla.group.consumer.records import Entry
from ottla.group.consumer.state import known_instance, static_successor
from ottla.group.heartbeats.group import Timer
from ottla.metadata.model.image import Image
from ottla.metadata.model.topic_names import names_of_topics
from ottla.wire.reader import Malformed

__all__ = ["heartbeat", "join", "leave", "sync"]


# -- joining


def join(group: ConsumerMembership, request: Join, to: Any, now: float) -> Effects:
    if group.is_empty:
        return migration.replaced_by_classic(group, request, to, now)
    try:
        return _join(group, request, to, now)
    except KafkaError as error:
        return [Reply(to, Joined(error.code, member_id=request.member_id))]


def _join(group: ConsumerMembership, request: Join, to: Any, now: float) -> Effects:
    group.check_size(request.member_id)
    sent = _check_protocols(group, request)
    if not request.member_id and request.instance_id is None and request.needs_known_id:
        return [Reply(to, Joined(Code.member_id_required, member_id=group.rules.new_id()))]
    before, entries = _member_of(group, request)
    image = group.rules.image()
    step = advance(
        group.log,
        before,
        _subscription(before, request, sent),
        owned=_owned(sent, image),
        image=image,
        seen=group.seen,
        matching=group.rules.matching,
        default_assignor=group.terms.assignors[0],
        now_ms=group.rules.wall_ms(),
    )
    answer = Joined(
        member_id=before.id,
        generation=step.member.position.epoch,
        protocol_type=CONSUMER,
        protocol_name=request.protocols[0][0],
    )
    entries += step.entries
    answered = group.answering(to, answer, lambda code: Joined(code, member_id=before.id))
    replaced = group.log.static_members.get(request.instance_id) if request.instance_id is not None else None
    if replaced is not None and migration.may_downgrade(group, [group.log.members[replaced]], staying=1):
        return [migration.downgrade(group, {replaced}, now, joining=step.member, then=answered)]

    def then(code: Code, at: float) -> Effects:
        return [*answered(code, at), *_joined(group, request, code, before, at)]

    computing = group.compute(in_thread=step.in_thread, now=now)
    return [group.write(entries, now, then, examined=step.examined), *computing]


def _check_protocols(group: ConsumerMembership, request: Join) -> EmbeddedSubscription:
    """KafkaError unless all classic members share a protocol and the subscription can be decoded."""
    classic = [member.subscription.classic for member in group.log.members.values()]
    known = [{name for name, _ in each.protocols} for each in classic if each is not None]
    offered = {name for name, _ in request.protocols}
    if request.protocol_type != CONSUMER or not offered.intersection(*known):
        raise KafkaError(Code.inconsistent_group_protocol, f"Member {request.member_id}'s protocols are not supported.")
    try:
        return read_subscription(request.protocols[0][1])
    except Malformed as error:
        raise KafkaError(Code.inconsistent_group_protocol, str(error)) from None


def _member_of(group: ConsumerMembership, request: Join) -> tuple[Member, list[Entry]]:
    member_id = request.member_id or group.rules.new_id()
    if request.instance_id is None:
        return group.log.members.get(member_id) or Member(member_id), []
    existing = group.log.static_member(request.instance_id)
    if request.member_id:
        return known_instance(existing, member_id, request.instance_id), []
    if existing is None:
        return Member(member_id), []
    return static_successor(group.log, existing, member_id)


def _subscription(before: Member, request: Join, sent: EmbeddedSubscription) -> Any:
    old = before.subscription
    return msgspec.structs.replace(
        old,
        instance_id=request.instance_id if request.instance_id is not None else old.instance_id,
        rack_id=sent.rack_id if sent.rack_id is not None else old.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=names_of_topics(sent.topics),
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMember(request.session_timeout_ms, request.protocols),
    )


def _owned(sent: EmbeddedSubscription, image: Image) -> Partitions:
    return frozenset((image.topics[topic].id.bytes, index) for topic, index in sent.owned if topic in image.topics)


def _joined(group: ConsumerMembership, request: Join, code: Code, member: Member, now: float) -> Effects:
    """Answer the JoinGroup; from now on the member has to send SyncGroup in time."""
    if code is not Code.none:
        return []
    group.cancel_timer(Timer.JOIN, member.id)
    sync_at = now + request.rebalance_timeout_ms / 1000
    group.set_timer(Timer.SYNC, member.id, sync_at)
    return [Wake(min(sync_at, group.renew_session(member.id, now)))]


# -- assignments


def sync(group: ConsumerMembership, request: Sync, to: Any, now: float) -> Effects:
    try:
        member = _classic_member(group, request.member_id, request.instance_id)
        classic = member.subscription.classic
        assert classic is not None
        if request.generation != member.position.epoch:
            raise KafkaError(Code.illegal_generation)
        name, metadata = classic.protocols[0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, name):
            raise KafkaError(Code.inconsistent_group_protocol)
        _check_no_rebalance(group, member, now)
    except KafkaError as error:
        return [Reply(to, Synced(error.code))]
    group.cancel_timer(Timer.SYNC, member.id)
    version = version_of(metadata)
    assignment = migration.encoded(member.position.assigned, group.rules.image(), version=version)
    answer = Synced(protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment)
    return [Reply(to, answer), Wake(group.renew_session(member.id, now))]


def _check_no_rebalance(group: ConsumerMembership, member: Member, now: float) -> None:
    """REBALANCE_IN_PROGRESS, except for members that must first revoke partitions in their current epoch."""
    behind = group.epoch_to_reach > member.position.epoch
    if behind and member.position.state is not MemberState.UNREVOKED_PARTITIONS:
        _await_join(group, member, now)
        raise KafkaError(Code.rebalance_in_progress)


def _await_join(group: ConsumerMembership, member: Member, now: float) -> None:
    at = now + member.subscription.rebalance_timeout_ms / 1000
    group.start_timer(Timer.JOIN, member.id, at)


def heartbeat(
    group: ConsumerMembership, member_id: str, instance_id: str | None, generation: int, now: float
) -> Effects:
    member = _classic_member(group, member_id, instance_id)
    if generation != member.position.epoch:
        raise KafkaError(Code.illegal_generation)
    group.renew_session(member_id, now)
    position = member.position
    waits_in_vain = position.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_others(group, member)
    if position.epoch < group.epoch_to_reach or position.state is MemberState.UNREVOKED_PARTITIONS or waits_in_vain:
        _await_join(group, member, now)
        raise KafkaError(Code.rebalance_in_progress)
    return [Wake(group.next_deadline()), *group.compute_deferred(now)]


def _waits_for_others(group: ConsumerMembership, member: Member) -> bool:
    missing = group.log.targets.get(member.id, frozenset()) - member.position.assigned
    return any(partition in group.log.owners for partition in missing)


def _classic_member(group: ConsumerMembership, member_id: str, instance_id: str | None) -> Member:
    if instance_id is None:
        member = group.member(member_id)
    else:
        member = known_instance(group.log.static_member(instance_id), member_id, instance_id)
    if not member.uses_classic:
        raise KafkaError(Code.unknown_member_id, f"Member {member_id} does not use the classic protocol.")
    return member


# -- leaving


def leave(group: ConsumerMembership, members: Sequence[Leave], to: Any, now: float) -> Effects:
    going: dict[str, Member] = {}
    results: list[tuple[Leave, Code]] = []
    for one in members:
        try:
            member = _leaving(group, one)
            going[member.id] = member
            results.append((one._replace(member_id=member.id), Code.none))
        except KafkaError as error:
            results.append((one, error.code))
    answer = Left(members=results)
    if not going:
        return [Reply(to, answer)]
    return [group.remove(list(going.values()), now, group.answering(to, answer, Left))]


def _leaving(group: ConsumerMembership, one: Leave) -> Member:
    if one.instance_id is not None and not one.member_id:  # an administrator removes the instance
        existing = group.log.static_member(one.instance_id)
        return _classic_member(group, existing.id if existing else "", one.instance_id)
    return _classic_member(group, one.member_id, one.instance_id)
