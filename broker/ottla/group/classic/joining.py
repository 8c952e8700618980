"""JoinGroup: new members, members that rejoin, and requests that are refused. Pure."""

from typing import Any

from ottla.coordination.core.effects import Effects, Reply, Wake
from ottla.errors import Code, KafkaError
from ottla.group.classic import static
from ottla.group.classic.member import Join, Joined, Member
from ottla.group.classic.protocols import common
from ottla.group.classic.rebalancing import Rebalancing
from ottla.group.classic.states import State
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["check", "join"]

NEW_ID_CHARACTERS = 37  # appended to a client's or an instance's id: a hyphen and a UUID


def check(request: Join) -> None:
    """INVALID_REQUEST for texts that are too long for a record of the group. Runs before the group is looked up."""
    name_bytes_max = TEXT_BYTES_MAX - NEW_ID_CHARACTERS
    names = (request.instance_id, request.client_id)
    texts = (request.member_id, request.protocol_type, *(name for name, _ in request.protocols))
    if any(is_too_long(one, bytes_max=name_bytes_max) for one in names) or any(map(is_too_long, texts)):
        raise KafkaError(Code.invalid_request, f"a member's texts have at most {name_bytes_max} bytes")


def join(group: Rebalancing, request: Join, to: Any, now: float) -> Effects:
    effects: Effects = []
    try:
        _check_size(group, request.member_id)
        _check_protocols(group, request)
        if request.member_id:
            _join_known(group, request, to, now, effects)
        else:
            _join_new(group, request, to, now, effects)
    except KafkaError as error:
        member_id = "" if error.code is Code.group_max_size_reached else request.member_id
        effects.append(Reply(to, Joined(error.code, member_id=member_id)))
    return effects


def _check_size(group: Rebalancing, member_id: str) -> None:
    """During a rebalance only members that have rejoined count: if there are too many, the last to rejoin is
    refused."""
    if group.current is State.EMPTY:
        return
    member = group.members.get(member_id)
    if group.current is State.PREPARING:
        waits = member is not None and member.waits_to_join
        accepted = waits or group.roster.waiting < group.rules.members_max
    else:
        accepted = member is not None or len(group.members) < group.rules.members_max
    if not accepted:
        group.remove(member_id)
        raise KafkaError(Code.group_max_size_reached)


def _check_protocols(group: Rebalancing, request: Join) -> None:
    offered = {name for name, _ in request.protocols}
    if group.current is State.EMPTY:
        fits = bool(request.protocol_type and offered)
    else:
        known = common(group.members.values()) if group.members else offered
        fits = request.protocol_type == group.protocol_type and bool(offered & known)
    if not fits:
        raise KafkaError(Code.inconsistent_group_protocol)


def _join_new(group: Rebalancing, request: Join, to: Any, now: float, effects: Effects) -> None:
    member_id = f"{request.instance_id or request.client_id}-{group.rules.new_id()}"
    if (old := group.roster.of_instance(request.instance_id)) is not None:
        static.replace(group, old, request, member_id, to, now, effects)
    elif request.instance_id is None and request.needs_known_id:
        # A client that never receives its id would add another member with every retry (KIP-394).
        until = now + request.session_timeout_ms / 1000
        group.roster.add_pending(member_id, until=until)
        effects += [Reply(to, Joined(Code.member_id_required, member_id=member_id)), Wake(until)]
    else:
        _add(group, request, member_id, to, now, effects)


def _join_known(group: Rebalancing, request: Join, to: Any, now: float, effects: Effects) -> None:
    if group.roster.is_pending_member(request.member_id):
        _add(group, request, request.member_id, to, now, effects)
        return
    member = group.roster.check(request.member_id, request.instance_id)
    is_leader = group.leader == member.member_id
    unchanged = member.protocols == request.protocols
    if group.current is State.COMPLETING and unchanged:
        # a retry: the answer may have been lost
        effects.append(Reply(to, group.joined(member.member_id, members=is_leader)))
    elif group.current is State.STABLE and unchanged and not is_leader:
        effects.append(Reply(to, group.joined(member.member_id, members=False)))
    else:
        # A leader that rejoins wants a rebalance: topics may have changed. An earlier request that still waits was
        # abandoned by the member.
        effects += member.answer_join(Joined(Code.rebalance_in_progress, member_id=member.member_id))
        member.update(request, to)
        group.rebalance_or_complete(f"{member.member_id} rejoined{_because(request)}", now, effects)


def _add(group: Rebalancing, request: Join, member_id: str, to: Any, now: float, effects: Effects) -> None:
    until = now + group.rules.first_answer_s_max
    group.admit(Member.new(member_id, request, to, until=until), request.protocol_type)
    effects.append(Wake(until))
    group.rebalance_or_complete(f"{member_id} joined{_because(request)}", now, effects)


def _because(request: Join) -> str:
    return f": {request.reason}" if request.reason else ""
