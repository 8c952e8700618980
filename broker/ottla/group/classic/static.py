"""Static members (KIP-345): an instance that returns with a new member id replaces the old one. Pure."""

from functools import partial
from typing import Any

from ottla.coordination.core.effects import Effects, Wake, Write
from ottla.errors import Code
from ottla.group.classic.member import Join, Joined, Member, Synced
from ottla.group.classic.protocols import chosen
from ottla.group.classic.rebalancing import Rebalancing
from ottla.group.classic.states import State

__all__ = ["replace"]


def replace(
    group: Rebalancing, old: Member, request: Join, member_id: str, to: Any, now: float, effects: Effects
) -> None:
    effects += old.answer_join(Joined(Code.fenced_instance_id, member_id=old.member_id))
    effects += old.answer_sync(Synced(Code.fenced_instance_id))
    old_leader = group.leader
    member = old.successor(member_id, protocols=old.protocols)
    group.replace(old, member)
    member.update(request, to)
    effects.append(Wake(member.renew_session(now)))
    if group.current is State.STABLE and chosen(group.members.values()) == group.protocol_name:
        assignment = {one.member_id: one.assignment for one in group.members.values()}
        then = partial(_written, group, member, old, request, old_leader)
        effects.append(Write([group.record(assignment)], then))
        return
    # the leader may already know the old id: an assignment to that one would be lost
    group.rebalance_or_complete(f"static member {request.instance_id} rejoined", now, effects)


def _written(
    group: Rebalancing, member: Member, old: Member, request: Join, old_leader: str | None, code: Code, now: float
) -> Effects:
    """The record with the new member id is committed, or failed; then the old id stays."""
    if group.members.get(member.member_id) is not member:
        return []  # it was replaced or left meanwhile, and was answered then
    if code is not Code.none:
        effects = [*member.answer_join(Joined(code)), Wake(member.renew_session(now))]
        back = member.successor(old.member_id, protocols=old.protocols)
        group.replace(member, back)
        return [*effects, Wake(back.renew_session(now))]
    if group.current is State.STABLE:
        answer = _answer(group, member, request, old_leader)
        return [*member.answer_join(answer), Wake(member.renew_session(now))]
    return []


def _answer(group: Rebalancing, member: Member, request: Join, old_leader: str | None) -> Joined:
    """A leader that returns must not assign again: from v9 on the answer says so (KIP-814), before v9 it names another
    leader."""
    if not request.may_skip_assignment:
        return group.joined(member.member_id, members=False, leader=old_leader)
    is_leader = group.leader == member.member_id
    return group.joined(member.member_id, members=is_leader)._replace(skip_assignment=is_leader)
