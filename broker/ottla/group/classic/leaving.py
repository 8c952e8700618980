"""LeaveGroup and expired sessions: members are removed and the group rebalances. Pure."""

from collections.abc import Sequence
from typing import Any

from ottla.coordination.core.effects import Effects, Reply
from ottla.errors import Code, KafkaError
from ottla.group.classic.member import Joined, Leave, Left, Member, Synced
from ottla.group.classic.rebalancing import Rebalancing
from ottla.group.classic.states import State

__all__ = ["leave", "pending_expired", "session_expired"]


def leave(group: Rebalancing, members: Sequence[Leave], to: Any, now: float) -> Effects:
    effects: Effects = []
    results = [(one, _leave_one(group, one, effects)) for one in members]
    left = [one.member_id or str(one.instance_id) for one, code in results if code is Code.none]
    if left:
        _rebalance_without(group, f"{', '.join(left)} left", now, effects)
    effects.append(Reply(to, Left(members=results)))
    return effects


def _leave_one(group: Rebalancing, one: Leave, effects: Effects) -> Code:
    member_id = one.member_id
    if not member_id:
        member = group.roster.of_instance(one.instance_id)
        if member is None:
            return Code.unknown_member_id
        member_id = member.member_id
    elif not group.roster.is_pending_member(member_id):
        try:
            group.roster.check(member_id, one.instance_id)
        except KafkaError as error:
            return error.code
    _remove(group, member_id, effects)
    return Code.none


def _remove(group: Rebalancing, member_id: str, effects: Effects) -> None:
    """A request of the member that still waits is refused, so the client rejoins as a new member."""
    member = group.members.get(member_id)
    if member is not None:
        effects += member.answer_join(Joined(Code.unknown_member_id))
        effects += member.answer_sync(Synced(Code.unknown_member_id))
    group.remove(member_id)


def _rebalance_without(group: Rebalancing, reason: str, now: float, effects: Effects) -> None:
    if group.current is not State.EMPTY:
        group.rebalance_or_complete(reason, now, effects)


def session_expired(group: Rebalancing, member: Member, now: float, effects: Effects) -> None:
    if group.members.get(member.member_id) is not member:
        return  # removed together with another one
    if member.is_session_held:
        member.hold_session()
        return
    _remove(group, member.member_id, effects)
    _rebalance_without(group, f"the session of {member.member_id} expired", now, effects)


def pending_expired(group: Rebalancing, member_id: str, now: float, effects: Effects) -> None:
    group.roster.remove_pending(member_id)
    if group.current is State.PREPARING:
        group.rebalance_or_complete(f"{member_id} did not join in time", now, effects)
