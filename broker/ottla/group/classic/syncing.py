"""SyncGroup: the leader brings the assignment, everybody takes a share of it, once it is committed. Pure."""

from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.errors import Code, KafkaError
from ottla.group.classic import rebalancing
from ottla.group.classic.member import NEVER, Sync, Synced
from ottla.group.classic.records import group_record
from ottla.group.classic.states import Event, State
from ottla.group.contract.effects import Effects, Reply, Write

if TYPE_CHECKING:
    from ottla.group.classic.group import ClassicGroup

__all__ = ["sync", "sync_time_is_over"]


def sync(group: "ClassicGroup", request: Sync, to: Any, now: float) -> Effects:
    try:
        _check(group, request)
    except KafkaError as error:
        return [Reply(to, Synced(error.code))]
    _arrived(group, request.member_id)
    member = group.members[request.member_id]
    if group.current is State.STABLE:
        return [Reply(to, Synced(Code.none, group.protocol_type, group.protocol_name, member.assignment))]
    effects: Effects = []
    if member.waiting_sync is not None:  # an earlier request of the same member, which gave up on it
        effects.append(Reply(member.waiting_sync, Synced(Code.unknown_member_id)))
    member.waiting_sync = to
    if group.leader == member.member_id:
        given = dict(request.assignments)
        assignment = {member_id: given.get(member_id, b"") for member_id in group.members}
        then = partial(_written, group, group.generation, assignment)
        effects.append(Write([group_record(group, assignment)], then))
    return effects


def _check(group: "ClassicGroup", request: Sync) -> None:
    group.check_member(request.member_id, request.instance_id)
    if request.generation != group.generation:
        raise KafkaError(Code.illegal_generation)
    if _differ(request.protocol_type, group.protocol_type) or _differ(request.protocol_name, group.protocol_name):
        raise KafkaError(Code.inconsistent_group_protocol)
    if group.current is State.PREPARING:
        raise KafkaError(Code.rebalance_in_progress)


def _differ(asked: str | None, own: str | None) -> bool:
    return asked is not None and own is not None and asked != own


def _arrived(group: "ClassicGroup", member_id: str) -> None:
    group.missing_syncs.discard(member_id)
    if not group.missing_syncs:
        group.sync_deadline = NEVER


def _written(group: "ClassicGroup", generation: int, assignment: dict[str, bytes], code: Code, now: float) -> Effects:
    """The assignment is committed, or will not be. The group may have moved on meanwhile: then nothing follows."""
    effects: Effects = []
    if group.current is not State.COMPLETING or group.generation != generation:
        return effects
    if code is Code.none:
        for member in group.members.values():
            member.assignment = assignment.get(member.member_id, b"")
        group.enter(Event.ASSIGNED)
        answer = Synced(Code.none, group.protocol_type, group.protocol_name)
        rebalancing.answer_syncs(group, answer, now, effects)
    else:
        rebalancing.answer_syncs(group, Synced(code), now, effects)
        rebalancing.rebalance(group, f"the assignment could not be stored: {code.name}", now, effects)
    return effects


def sync_time_is_over(group: "ClassicGroup", now: float, effects: Effects) -> None:
    """Members that joined and never asked for their share are gone."""
    group.sync_deadline = NEVER
    missing = sorted(group.missing_syncs)
    for member_id in missing:
        group.remove(member_id)
    if missing and group.is_in(State.COMPLETING, State.STABLE):
        rebalancing.rebalance(group, f"{', '.join(missing)} did not ask for an assignment in time", now, effects)
