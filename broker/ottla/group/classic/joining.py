"""JoinGroup: members come, come back, or are told why they cannot. Pure."""

from typing import TYPE_CHECKING, Any

from ottla.errors import Code, KafkaError
from ottla.group.classic import static
from ottla.group.classic.member import Join, Joined, Member
from ottla.group.classic.protocols import common
from ottla.group.classic.rebalancing import rebalance_or_complete
from ottla.group.classic.states import State
from ottla.group.contract.effects import Effects, Reply, Wake
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

if TYPE_CHECKING:
    from ottla.group.classic.group import ClassicGroup

__all__ = ["check", "join"]

NEW_ID_CHARACTERS = 37  # what is put behind a client's or an instance's name: a hyphen and a UUID


def check(request: Join) -> None:
    """INVALID_REQUEST for texts that no record of the group could hold, before anything is looked up."""
    name_bytes_max = TEXT_BYTES_MAX - NEW_ID_CHARACTERS
    names = (request.instance_id, request.client_id)
    texts = (request.member_id, request.protocol_type, *(name for name, _ in request.protocols))
    if any(is_too_long(one, bytes_max=name_bytes_max) for one in names) or any(map(is_too_long, texts)):
        raise KafkaError(Code.invalid_request, f"a member's texts have at most {name_bytes_max} bytes")


def join(group: "ClassicGroup", request: Join, to: Any, now: float) -> Effects:
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


def _check_size(group: "ClassicGroup", member_id: str) -> None:
    """While a group comes together, who waits counts: the last to come back must go if there are too many."""
    if group.current is State.EMPTY:
        return
    member = group.members.get(member_id)
    if group.current is State.PREPARING:
        accepted = (member is not None and member.waiting_join is not None) or group.waiting < group.rules.members_max
    else:
        accepted = member is not None or len(group.members) < group.rules.members_max
    if not accepted:
        group.remove(member_id)
        raise KafkaError(Code.group_max_size_reached)


def _check_protocols(group: "ClassicGroup", request: Join) -> None:
    offered = {name for name, _ in request.protocols}
    if group.current is State.EMPTY:
        fits = bool(request.protocol_type and offered)
    else:
        known = common(group.members.values()) if group.members else offered
        fits = request.protocol_type == group.protocol_type and bool(offered & known)
    if not fits:
        raise KafkaError(Code.inconsistent_group_protocol)


def _join_new(group: "ClassicGroup", request: Join, to: Any, now: float, effects: Effects) -> None:
    member_id = f"{request.instance_id or request.client_id}-{group.rules.new_id()}"
    if request.instance_id is not None and request.instance_id in group.instances:
        static.replace(group, request, member_id, to, now, effects)
    elif request.instance_id is None and request.needs_known_id:
        # A client that never hears its id would leave a member behind with every attempt (KIP-394).
        group.pending[member_id] = now + request.session_timeout_ms / 1000
        effects.append(Reply(to, Joined(Code.member_id_required, member_id=member_id)))
        effects.append(Wake(group.pending[member_id]))
    else:
        _add(group, request, member_id, to, now, effects)


def _join_known(group: "ClassicGroup", request: Join, to: Any, now: float, effects: Effects) -> None:
    if request.member_id in group.pending:
        _add(group, request, request.member_id, to, now, effects)
        return
    group.check_member(request.member_id, request.instance_id)
    member = group.members[request.member_id]
    is_leader = group.leader == member.member_id
    unchanged = member.protocols == request.protocols
    if group.current is State.COMPLETING and unchanged:
        # it may have missed the answer
        effects.append(Reply(to, group.joined(member.member_id, members=is_leader)))
    elif group.current is State.STABLE and unchanged and not is_leader:
        effects.append(Reply(to, group.joined(member.member_id, members=False)))
    else:
        # a leader that joins again wants a rebalance: topics may have changed
        _release(member, effects)
        member.update(request, to)
        rebalance_or_complete(group, f"{member.member_id} joins again: {request.reason or ''}", now, effects)


def _release(member: Member, effects: Effects) -> None:
    """An earlier request of the same member that still waits: the member has given it up."""
    if member.waiting_join is not None:
        effects.append(Reply(member.waiting_join, Joined(Code.rebalance_in_progress, member_id=member.member_id)))


def _add(group: "ClassicGroup", request: Join, member_id: str, to: Any, now: float, effects: Effects) -> None:
    member = Member.of(member_id, request)
    member.is_new = True
    member.waiting_join = to
    member.deadline = now + group.rules.first_answer_s_max
    if not group.members:
        group.protocol_type = request.protocol_type
    group.add(member)
    group.newcomers = True
    effects.append(Wake(member.deadline))
    rebalance_or_complete(group, f"{member_id} comes: {request.reason or ''}", now, effects)
