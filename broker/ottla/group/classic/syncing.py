"""SyncGroup: the leader sends the assignment; every member gets its own part once that is committed. Pure."""

from typing import Any

from ottla.coordination.core.effects import Effects, Reply
from ottla.errors import Code, KafkaError
from ottla.group.classic.member import Member, Sync, Synced
from ottla.group.classic.rebalancing import Rebalancing
from ottla.group.classic.states import State

__all__ = ["sync"]


def sync(group: Rebalancing, request: Sync, to: Any, now: float) -> Effects:
    try:
        member = _check(group, request)
    except KafkaError as error:
        return [Reply(to, Synced(error.code))]
    group.member_synced(member.member_id)
    if group.current is State.STABLE:
        return [Reply(to, Synced(Code.none, group.protocol_type, group.protocol_name, member.assignment))]
    # an earlier request of the same member that still waits was abandoned
    effects = member.answer_sync(Synced(Code.unknown_member_id))
    member.wait_for_assignment(to)
    if group.leader == member.member_id:
        group.assign(dict(request.assignments), effects)
    return effects


def _check(group: Rebalancing, request: Sync) -> Member:
    member = group.roster.check(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise KafkaError(Code.illegal_generation)
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
        raise KafkaError(Code.inconsistent_group_protocol)
    if group.current is State.PREPARING:
        raise KafkaError(Code.rebalance_in_progress)
    return member


def _differ(asked: str | None, own: str | None) -> bool:
    return asked is not None and own is not None and asked != own
