"""ConsumerGroupHeartbeat (KIP-848): joining, going on, and leaving. Pure."""

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
    LEAVING_FOR_A_WHILE,
    Member,
    MemberState,
    Partitions,
    Position,
    Subscription,
)
from ottla.group.consumer.membership import ConsumerRules, Terms
from ottla.group.consumer.migration import check_upgrade, refused_joins, upgrade
from ottla.group.consumer.records import CURRENT_ASSIGNMENT, Entry
from ottla.group.consumer.state import NOTHING, known_instance, static_successor
from ottla.group.contract.group import Group
from ottla.group.heartbeats.epochs import Seen
from ottla.group.heartbeats.group import MOVING_HEARTBEAT_MS
from ottla.metadata.model.topic_names import names_of_topics
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["Decision", "Heartbeat", "HeartbeatAnswer", "Moved", "check", "decide", "group_for", "heartbeat"]

MEMBERS_NAME_THEMSELVES = 1


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A request. None, and -1 of the rebalance timeout: as before."""

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
        return self.member_epoch in (LEAVING, LEAVING_FOR_A_WHILE)

    @property
    def is_full(self) -> bool:
        """The client sends everything, because an answer got lost or there was none yet: so it gets everything."""
        says_what = self.topics is not None or self.regex is not None
        return self.joins or (self.rebalance_timeout_ms != -1 and says_what and self.owned is not None)


class HeartbeatAnswer(msgspec.Struct, frozen=True):
    """`assigned` None: as before."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


class Decision(msgspec.Struct, frozen=True):
    """`examined` and `elsewhere` as `Advance` has them."""

    answer: HeartbeatAnswer
    entries: list[Entry]
    examined: Seen | None = None
    elsewhere: bool = False


class Moved(NamedTuple):
    """A classic group, and the entries that make a consumer group of its members: none when it is empty."""

    classic: ClassicGroup
    entries: Sequence[Entry]


def check(request: Heartbeat, terms: Terms) -> None:
    """INVALID_REQUEST and UNSUPPORTED_ASSIGNOR, before the group is searched for."""
    problem = _problem(request)
    if problem:
        raise KafkaError(Code.invalid_request, problem)
    if request.assignor is not None and request.assignor not in terms.assignors:
        known = ", ".join(terms.assignors)
        raise KafkaError(
            Code.unsupported_assignor,
            f"ServerAssignor {request.assignor} is not supported. Supported assignors: {known}.",
        )


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
    if epoch == LEAVING_FOR_A_WHILE and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < LEAVING_FOR_A_WHILE else None


def _joining_problem(request: Heartbeat) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.owned is None or request.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if request.topics is None and request.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


# -- which group it is for


def group_for(request: Heartbeat, known: Group | None, rules: ConsumerRules) -> tuple[ConsumerGroup, Moved | None]:
    """A group that is not in the shard yet comes into it with the first thing written. KafkaError: no such group."""
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
    if known.is_empty:  # perhaps an id was given out here; its owner may join with it
        return group, Moved(known, ())
    check_upgrade(known, policy=rules.policy(), members_max=rules.terms(group_id).members_max)
    entries = upgrade(known, rules.image())
    for entry in entries:
        group.log.apply(entry)
    return group, Moved(known, entries)


# -- joining and going on


def heartbeat(group: ConsumerGroup, request: Heartbeat, to: Any, now: float, *, moved: Moved | None = None) -> Effects:
    """KafkaError refuses, and nothing has changed. `moved`: the classic group whose place this one is to take."""
    if request.leaves:
        return _leave(group, request, to, now)
    decision = decide(group, request, now)
    answer = decision.answer
    entries = [*(moved.entries if moved else ()), *decision.entries]
    computing = group.compute(elsewhere=decision.elsewhere, now=now)
    if not entries:
        group.has_examined(decision.examined)
        return [Reply(to, answer), Wake(group.alive(answer.member_id, now)), *computing]

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


def _refused(code: Code) -> Code:
    return code


def decide(group: ConsumerGroup, request: Heartbeat, now: float) -> Decision:
    """What a member that stays has now, and the entries that say so."""
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
    changed = position.assigned != before.position.assigned
    answer = HeartbeatAnswer(
        before.id,
        position.epoch,
        group.heartbeat_interval_ms(now) if not entries else min(terms.heartbeat_interval_ms, MOVING_HEARTBEAT_MS),
        position.assigned if changed or request.is_full else None,
    )
    return Decision(answer, entries, step.examined, step.elsewhere)


def _subscription(old: Subscription, request: Heartbeat) -> Subscription:
    """What the request leaves out stays as it was."""
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


# -- who asks


def _member_of(group: ConsumerGroup, request: Heartbeat) -> tuple[Member, list[Entry]]:
    """The member as it is, or a new one; and what puts it in another one's place."""
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
    if not existing.uses_classic and existing.position.epoch != LEAVING_FOR_A_WHILE:
        raise KafkaError(
            Code.unreleased_instance_id,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {existing.id} member.",
        )
    return static_successor(group.log, existing, member_id)


def _check_epoch(position: Position, request: Heartbeat) -> None:
    """The epoch before is fine when an answer may have got lost, as long as the member holds nothing else."""
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
    position = msgspec.structs.replace(member.position, epoch=LEAVING_FOR_A_WHILE, revoking=NOTHING)
    entry = Entry(CURRENT_ASSIGNMENT, (group.group_id, member.id), position)
    return [group.write([entry], now, group.answering(to, answer, _refused))]
