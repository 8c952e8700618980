"""ConsumerGroupHeartbeat (KIP-848): joining, staying, and leaving. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ottla.coordination.core.effects import Effects, Reply, Wake
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup
from ottla.group.consumer.advance import advance
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.member import (
    LEAVING,
    LEAVING_TEMPORARILY,
    Member,
    MemberState,
    Partitions,
    Position,
    Subscription,
)
from ottla.group.consumer.membership import ConsumerRules, Terms
from ottla.group.consumer.migration import check_upgrade, refused_joins, upgrade
from ottla.group.consumer.records import CURRENT_ASSIGNMENT, Entry
from ottla.group.consumer.state import NOTHING, GroupState, known_instance, static_successor
from ottla.group.contract.group import Group
from ottla.group.heartbeats.epochs import Seen
from ottla.group.heartbeats.group import MOVING_HEARTBEAT_MS
from ottla.metadata.model.topic_names import names_of_topics
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["Decision", "Heartbeat", "HeartbeatAnswer", "Upgrade", "check", "decide", "group_for", "heartbeat"]

MEMBERS_NAME_THEMSELVES = 1


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A request. None, and -1 for the rebalance timeout, mean unchanged."""

    version: int
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def joins(self) -> bool:
        return self.member_epoch == 0

    @property
    def leaves(self) -> bool:
        return self.member_epoch in (LEAVING, LEAVING_TEMPORARILY)

    @property
    def is_full(self) -> bool:
        """The client sends all fields, because it is new or an answer was lost; it gets its whole assignment."""
        says_what = self.topics is not None or self.regex is not None
        return self.joins or (self.rebalance_timeout_ms != -1 and says_what and self.owned is not None)


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """`assigned` None: unchanged."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


class Decision(msgspec.Struct, frozen=True):
    """`examined` and `in_thread` as in `Advance`. `repeats`: the answer's assignment is no news.
    `acknowledges`: the member reports just what it is assigned."""

    answer: HeartbeatAnswer
    entries: list[Entry]
    examined: Seen | None = None
    in_thread: bool = False
    repeats: bool = False
    acknowledges: bool = False


class Upgrade(NamedTuple):
    """A classic group, and the entries that turn it into a consumer group; no entries if it is empty."""

    classic: ClassicGroup
    entries: Sequence[Entry]


def check(request: Heartbeat, terms: Terms) -> None:
    """KafkaError: INVALID_REQUEST, UNSUPPORTED_ASSIGNOR. Runs before the group is looked up."""
    problem = _problem(request)
    if problem:
        raise KafkaError(Code.invalid_request, problem)
    if request.assignor is not None and request.assignor not in terms.assignors:
        known = ", ".join(terms.assignors)
        raise KafkaError(
            Code.unsupported_assignor,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: {known}.",
        )


def says_what_is_visible(request: Heartbeat, log: GroupState | None) -> bool:
    """Whether the rights of this client count for the topics that its group's expression shows: it joins, or is a
    member now. Everybody else is refused later, and must not have decided anything by then."""
    if request.joins:
        return True
    member = None if log is None else log.members.get(request.member_id)
    if member is None or request.leaves:
        return False
    return request.member_epoch in (member.position.epoch, member.position.previous_epoch)


def _problem(request: Heartbeat) -> str | None:
    epoch = request.member_epoch
    names_itself = request.version >= MEMBERS_NAME_THEMSELVES or epoch > 0 or epoch == LEAVING
    if names_itself and not request.member_id.strip():
        return "MemberId can't be empty."
    for name, text in (("GroupId", request.group_id), ("InstanceId", request.instance_id), ("RackId", request.rack_id)):
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    texts = (request.member_id, request.instance_id, request.rack_id, request.regex)
    if any(map(is_too_long, texts)):
        return f"MemberId, InstanceId, RackId and SubscribedTopicRegex have at most {TEXT_BYTES_MAX} bytes."
    if epoch == 0:
        return _joining_problem(request)
    if epoch == LEAVING_TEMPORARILY and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < LEAVING_TEMPORARILY else None


def _joining_problem(request: Heartbeat) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.owned is None or request.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if request.topics is None and request.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


# -- which group it is for


def group_for(request: Heartbeat, known: Group | None, rules: ConsumerRules) -> tuple[ConsumerGroup, Upgrade | None]:
    """The group, perhaps a new one that enters the shard with its first write. KafkaError: GROUP_ID_NOT_FOUND."""
    if isinstance(known, ConsumerGroup):
        return known, None
    group_id = request.group_id
    if not request.joins:
        reason = (
            f"Consumer group {group_id} not found." if known is None else f"Group {group_id} is not a consumer group."
        )
        raise KafkaError(Code.group_id_not_found, reason)
    group = ConsumerGroup(group_id, rules)
    if known is None:
        return group, None
    if not isinstance(known, ClassicGroup):
        raise KafkaError(Code.group_id_not_found, f"Group {group_id} is not a consumer group.")
    if known.is_empty:  # a member id may be pending here; its owner may join with it
        return group, Upgrade(known, ())
    check_upgrade(known, policy=rules.policy(), members_max=rules.terms(group_id).members_max)
    entries = upgrade(known, rules.image())
    for entry in entries:
        group.log.apply(entry)
    return group, Upgrade(known, entries)


# -- joining and staying


def heartbeat(
    group: ConsumerGroup, request: Heartbeat, to: Any, now: float, *, moved: Upgrade | None = None
) -> Effects:
    """Raises KafkaError without any change. `moved`: the classic group that this one replaces."""
    if request.leaves:
        return _leave(group, request, to, now)
    decision = decide(group, request, now)
    answer = decision.answer
    _note_assignment(group, decision)
    entries = [*(moved.entries if moved else ()), *decision.entries]
    computing = group.compute(in_thread=decision.in_thread, now=now)
    if not entries:
        group.has_examined(decision.examined)
        return [Reply(to, answer), Wake(group.renew_session(answer.member_id, now)), *computing]

    answered = group.answering(to, answer, _refused)
    classic = moved.classic if moved is not None else None
    written = group.answer_when_written(
        entries,
        answer.member_id,
        now,
        answered,
        examined=decision.examined,
        before=classic.tombstones() if classic is not None else (),
        inherited=(lambda: refused_joins(classic)) if classic is not None else list,
    )
    return [*written, *computing]


def _note_assignment(group: ConsumerGroup, decision: Decision) -> None:
    answer = decision.answer
    if answer.assigned is not None:
        group.answered_assignment(answer.member_id, repeated=decision.repeats)
    elif decision.acknowledges:
        group.acknowledged(answer.member_id)


def _refused(code: Code) -> Code:
    return code


def decide(group: ConsumerGroup, request: Heartbeat, now: float) -> Decision:
    """The answer to a member that joins or stays, and the entries to write."""
    terms = group.terms
    group.check_size(request.member_id)
    before, replacing = _member_of(group, request)
    if before.position.state is MemberState.UNKNOWN and (request.owned is None or request.owned):
        raise KafkaError(
            Code.fenced_member_epoch,
            "The consumer group member is in an unknown state. The member must abandon all its partitions and rejoin.",
        )
    subscription = _subscription(before.subscription, request)
    if subscription.regex:
        group.rules.matching.check(subscription.regex)
    step = advance(
        group.log,
        before,
        subscription,
        owned=request.owned,
        image=group.rules.image(),
        seen=group.seen,
        matching=group.rules.matching,
        default_assignor=terms.assignors[0],
        now_ms=group.rules.wall_ms(),
    )
    entries = replacing + step.entries
    position = step.member.position
    is_news = request.is_full or position.assigned != before.position.assigned
    repeats = not is_news and request.owned is None and group.must_repeat_assignment(step.member)
    answer = HeartbeatAnswer(
        before.id,
        position.epoch,
        group.heartbeat_interval_ms(now) if not entries else min(terms.heartbeat_interval_ms, MOVING_HEARTBEAT_MS),
        position.assigned if is_news or repeats else None,
    )
    return Decision(
        answer,
        entries,
        step.examined,
        step.in_thread,
        repeats=repeats,
        acknowledges=request.owned == position.assigned,
    )


def _subscription(old: Subscription, request: Heartbeat) -> Subscription:
    """Fields that the request omits are unchanged."""
    timeout_ms = request.rebalance_timeout_ms
    return msgspec.structs.replace(
        old,
        instance_id=old.instance_id if request.instance_id is None else request.instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=old.assignor if request.assignor is None else request.assignor,
        topics=old.topics if request.topics is None else names_of_topics(request.topics),
        regex=old.regex if request.regex is None else request.regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


# -- the member


def _member_of(group: ConsumerGroup, request: Heartbeat) -> tuple[Member, list[Entry]]:
    """The member as it is, or a new one; and the entries that put it in the place of another one."""
    if request.instance_id is not None:
        return _static_member(group, request, request.instance_id)
    member_id = request.member_id or group.rules.new_id()
    member = group.log.members.get(member_id)
    if member is None:
        member = Member(member_id) if request.joins else group.member(member_id)
    _check_epoch(member.position, request)
    return member, []


def _static_member(group: ConsumerGroup, request: Heartbeat, instance_id: str) -> tuple[Member, list[Entry]]:
    existing = group.log.static_member(instance_id)
    if not request.joins:
        member = known_instance(existing, request.member_id, instance_id)
        _check_epoch(member.position, request)
        return member, []
    member_id = request.member_id or group.rules.new_id()
    if existing is None:
        return group.log.members.get(member_id) or Member(member_id), []
    if not existing.uses_classic and existing.position.epoch != LEAVING_TEMPORARILY:
        raise KafkaError(
            Code.unreleased_instance_id,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {existing.id} member.",
        )
    return static_successor(group.log, existing, member_id)


def _check_epoch(position: Position, request: Heartbeat) -> None:
    """The previous epoch is accepted, as an answer may have been lost, if the member owns no other partitions."""
    sent, known = request.member_epoch, position.epoch
    if sent == known:
        return
    lost_answer = sent == position.previous_epoch and request.owned is not None and request.owned <= position.assigned
    if sent > known or not lost_answer:
        size = "greater" if sent > known else "smaller"
        raise KafkaError(
            Code.fenced_member_epoch,
            f"The consumer group member has a {size} member epoch ({sent}) than the one known by the group coordinator "
            f"({known}). The member must abandon all its partitions and rejoin.",
        )


# -- leaving


def _leave(group: ConsumerGroup, request: Heartbeat, to: Any, now: float) -> Effects:
    answer = HeartbeatAnswer(request.member_id, request.member_epoch)
    if request.instance_id is None:
        member = group.member(request.member_id)
        return [group.remove([member], now, group.answering(to, answer, _refused))]
    member = known_instance(group.log.static_member(request.instance_id), request.member_id, request.instance_id)
    if request.member_epoch == LEAVING:
        return [group.remove([member], now, group.answering(to, answer, _refused))]
    position = msgspec.structs.replace(member.position, epoch=LEAVING_TEMPORARILY, revoking=NOTHING)
    entry = Entry(CURRENT_ASSIGNMENT, (group.group_id, member.id), position)
    return [group.write([entry], now, group.answering(to, answer, _refused))]
