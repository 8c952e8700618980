"""ShareGroupHeartbeat (KIP-932): joining, staying, and leaving. Pure."""

from typing import Any

import msgspec

from ottla.coordination.core.effects import Effects, Reply, Wake
from ottla.errors import Code, KafkaError
from ottla.group.consumer.member import LEAVING, Member, Partitions, Position, Subscription
from ottla.group.contract.group import Group
from ottla.group.heartbeats.group import MOVING_HEARTBEAT_MS
from ottla.group.share.advance import advance
from ottla.group.share.group import ShareGroup, ShareRules
from ottla.metadata.model.topic_names import names_of_topics
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["ShareHeartbeat", "ShareHeartbeatAnswer", "check", "group_for", "heartbeat"]


class ShareHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A request. None means unchanged."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None = None
    topics: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def joins(self) -> bool:
        return self.member_epoch == 0


class ShareHeartbeatAnswer(msgspec.Struct, frozen=True):
    """`assigned` None: unchanged."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


def check(request: ShareHeartbeat) -> None:
    """KafkaError: INVALID_REQUEST. Runs before the group is looked up."""
    if problem := _problem(request):
        raise KafkaError(Code.invalid_request, problem)


def _problem(request: ShareHeartbeat) -> str | None:
    for name, text in (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id)):
        if text is not None and not text.strip():
            return f"{name} can't be empty."
        if is_too_long(text):
            return f"{name} has at most {TEXT_BYTES_MAX} bytes."
    if request.joins:
        return None if request.topics else "SubscribedTopicNames must be set in first request."
    return "MemberEpoch is invalid." if request.member_epoch < LEAVING else None


def group_for(request: ShareHeartbeat, known: Group | None, rules: ShareRules) -> ShareGroup:
    """The existing group, or a new one that enters the shard with its first write."""
    if isinstance(known, ShareGroup):
        return known
    group_id = request.group_id
    if known is not None:
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} is not a share group.")
    if not request.joins:
        # Kafka has another sentence for a member that leaves.
        text = (
            f"Group {group_id} not found." if request.member_epoch == LEAVING else f"Share group {group_id} not found."
        )
        raise KafkaError(Code.group_id_not_found, text)
    return ShareGroup(group_id, rules)


def heartbeat(group: ShareGroup, request: ShareHeartbeat, to: Any, now: float) -> Effects:
    """Raises KafkaError without any change."""
    if request.member_epoch == LEAVING:
        answer = ShareHeartbeatAnswer(request.member_id, request.member_epoch)
        member = group.member(request.member_id)
        return [group.remove([member], now, group.answering(to, answer, _refused))]
    group.check_size(request.member_id)
    before = _member_of(group, request)
    subscription = _subscription(before.subscription, request)
    step = advance(group.log, before, subscription, image=group.rules.image(), seen=group.seen)
    position = step.member.position
    is_news = request.joins or request.topics is not None or position.assigned != before.position.assigned
    answer = ShareHeartbeatAnswer(
        before.id,
        position.epoch,
        _interval_ms(group, now, changes=bool(step.entries)),
        position.assigned if is_news else None,
    )
    computing = group.compute(in_thread=step.in_thread, now=now)
    if not step.entries:
        group.has_examined(step.examined)
        return [Reply(to, answer), Wake(group.renew_session(before.id, now)), *computing]
    answered = group.answering(to, answer, _refused)
    return [
        *group.answer_when_written(step.entries, before.id, now, answered, examined=step.examined),
        *computing,
    ]


def _refused(code: Code) -> Code:
    return code


def _interval_ms(group: ShareGroup, now: float, *, changes: bool) -> int:
    """Shorter while the group changes: the states of its partitions are initialized at that time."""
    usual = group.heartbeat_interval_ms(now)
    return min(usual, MOVING_HEARTBEAT_MS) if changes else usual


def _member_of(group: ShareGroup, request: ShareHeartbeat) -> Member:
    member = group.log.members.get(request.member_id)
    if member is None:
        member = Member(request.member_id) if request.joins else group.member(request.member_id)
    _check_epoch(member.position, request.member_epoch)
    return member


def _check_epoch(position: Position, sent: int) -> None:
    """The previous epoch is accepted: an answer may have been lost."""
    known, previous = position.epoch, position.previous_epoch
    if sent in (known, previous):
        return
    begin = (
        f"The share group member has a {'greater' if sent > known else 'smaller'} member epoch ({sent}) than the one"
    )
    end = "The member must abandon all its partitions and rejoin."
    middle = "" if sent > known else f", and it does not match the previous member epoch ({previous})"
    raise KafkaError(Code.fenced_member_epoch, f"{begin} known by the group coordinator ({known}){middle}. {end}")


def _subscription(old: Subscription, request: ShareHeartbeat) -> Subscription:
    """Fields that the request omits are unchanged."""
    return msgspec.structs.replace(
        old,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        topics=old.topics if request.topics is None else names_of_topics(request.topics),
        client_id=request.client_id,
        client_host=request.client_host,
    )
