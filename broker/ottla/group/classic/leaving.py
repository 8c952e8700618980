"""Members that leave, by their own wish or because their time is over. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.errors import Code, KafkaError
from ottla.group.classic import rebalancing
from ottla.group.classic.member import NEVER, Joined, Leave, Left, Member, Synced
from ottla.group.classic.states import State
from ottla.group.contract.effects import Effects, Reply

if TYPE_CHECKING:
    from ottla.group.classic.group import ClassicGroup

__all__ = ["leave", "pending_ended", "session_ended"]


def leave(group: "ClassicGroup", members: Sequence[Leave], to: Any, now: float) -> Effects:
    effects: Effects = []
    results = [(one, _leave_one(group, one, effects)) for one in members]
    left = [one.member_id or str(one.instance_id) for one, code in results if code is Code.none]
    if left:
        _go_on(group, f"{', '.join(left)} left", now, effects)
    effects.append(Reply(to, Left(members=results)))
    return effects


def _leave_one(group: "ClassicGroup", one: Leave, effects: Effects) -> Code:
    member_id = one.member_id
    if not member_id:
        if one.instance_id is None or one.instance_id not in group.instances:
            return Code.unknown_member_id
        member_id = group.instances[one.instance_id]
    elif member_id not in group.pending:
        try:
            group.check_member(member_id, one.instance_id)
        except KafkaError as error:
            return error.code
    _remove(group, member_id, effects)
    return Code.none


def _remove(group: "ClassicGroup", member_id: str, effects: Effects) -> None:
    """Whoever still waits is told to begin anew."""
    member = group.members.get(member_id)
    if member is not None and member.waiting_join is not None:
        effects.append(Reply(member.waiting_join, Joined(Code.unknown_member_id)))
    if member is not None and member.waiting_sync is not None:
        effects.append(Reply(member.waiting_sync, Synced(Code.unknown_member_id)))
    group.remove(member_id)


def _go_on(group: "ClassicGroup", reason: str, now: float, effects: Effects) -> None:
    if group.current is not State.EMPTY:
        rebalancing.rebalance_or_complete(group, reason, now, effects)


def session_ended(group: "ClassicGroup", member: Member, now: float, effects: Effects) -> None:
    if group.members.get(member.member_id) is not member:
        return  # went with another one
    if member.is_excused:
        member.deadline = NEVER  # until it is answered
        return
    _remove(group, member.member_id, effects)
    _go_on(group, f"the session of {member.member_id} ended", now, effects)


def pending_ended(group: "ClassicGroup", member_id: str, now: float, effects: Effects) -> None:
    group.pending.pop(member_id, None)
    if group.current is State.PREPARING:
        rebalancing.rebalance_or_complete(group, f"{member_id} never came", now, effects)
