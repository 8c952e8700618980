"""Static members (KIP-345): an instance that comes back under a new member id takes the place of the old one. Pure."""

from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.errors import Code
from ottla.group.classic import rebalancing
from ottla.group.classic.member import Join, Joined, Member, Synced
from ottla.group.classic.protocols import chosen
from ottla.group.classic.records import group_record
from ottla.group.classic.states import State
from ottla.group.contract.effects import Effects, Reply, Wake, Write

if TYPE_CHECKING:
    from ottla.group.classic.group import ClassicGroup

__all__ = ["replace"]


def replace(group: "ClassicGroup", request: Join, member_id: str, to: Any, now: float, effects: Effects) -> None:
    assert request.instance_id is not None
    old = group.members[group.instances[request.instance_id]]
    _fence(old, effects)
    old_leader = group.leader
    member = _take_place(group, old, member_id)
    member.update(request, to)
    effects.append(Wake(member.alive(now)))
    if group.current is State.STABLE and chosen(group.members.values()) == group.protocol_name:
        assignment = {one.member_id: one.assignment for one in group.members.values()}
        then = partial(_written, group, member, old, request, old_leader)
        effects.append(Write([group_record(group, assignment)], then))
        return
    # the leader may already have the old id in hand: what it assigns to that would be lost
    rebalancing.rebalance_or_complete(group, f"static member {request.instance_id} comes back", now, effects)


def _fence(old: Member, effects: Effects) -> None:
    if old.waiting_join is not None:
        effects.append(Reply(old.waiting_join, Joined(Code.fenced_instance_id, member_id=old.member_id)))
    if old.waiting_sync is not None:
        effects.append(Reply(old.waiting_sync, Synced(Code.fenced_instance_id)))
    old.waiting_join = old.waiting_sync = None


def _take_place(group: "ClassicGroup", old: Member, member_id: str) -> Member:
    """At the same place in the order of members: some assignors care."""
    new = Member(
        member_id,
        instance_id=old.instance_id,
        client_id=old.client_id,
        client_host=old.client_host,
        session_timeout_ms=old.session_timeout_ms,
        rebalance_timeout_ms=old.rebalance_timeout_ms,
        protocols=old.protocols,
        assignment=old.assignment,
    )
    members = [new if member is old else member for member in group.members.values()]
    group.members = {member.member_id: member for member in members}
    assert old.instance_id is not None
    group.instances[old.instance_id] = member_id
    group.missing_syncs.discard(old.member_id)
    if group.leader == old.member_id:
        group.leader = member_id
    return new


def _written(
    group: "ClassicGroup", member: Member, old: Member, request: Join, old_leader: str | None, code: Code, now: float
) -> Effects:
    """The new member id is in the log, or the old one has to stay."""
    effects: Effects = []
    if group.members.get(member.member_id) is not member:
        return effects  # it has been replaced or has left meanwhile, and was answered then
    if code is not Code.none:
        rebalancing.answer_join(member, Joined(code), now, effects)
        back = _take_place(group, member, old.member_id)
        back.protocols = old.protocols
        effects.append(Wake(back.alive(now)))
    elif group.current is State.STABLE:
        rebalancing.answer_join(member, _answer(group, member, request, old_leader), now, effects)
    return effects


def _answer(group: "ClassicGroup", member: Member, request: Join, old_leader: str | None) -> Joined:
    """A leader that comes back must not assign anew: from v9 on it is told so (KIP-814), before it is not told that it
    leads."""
    if not request.may_skip_assignment:
        return group.joined(member.member_id, members=False, leader=old_leader)
    is_leader = group.leader == member.member_id
    return group.joined(member.member_id, members=is_leader)._replace(skip_assignment=is_leader)
