"""Coming together for the next generation: who is waited for, how long, and what follows. Pure."""

from typing import TYPE_CHECKING

from ottla.errors import Code
from ottla.group.classic.member import NEVER, Joined, Member, Synced
from ottla.group.classic.protocols import chosen
from ottla.group.classic.records import group_record
from ottla.group.classic.states import Event, State
from ottla.group.contract.effects import Effects, Reply, Wake, Write

if TYPE_CHECKING:
    from ottla.group.classic.group import ClassicGroup

__all__ = ["answer_join", "answer_syncs", "join_time_is_over", "rebalance", "rebalance_or_complete"]


def rebalance_or_complete(group: "ClassicGroup", reason: str, now: float, effects: Effects) -> None:
    if group.current is not State.PREPARING:
        rebalance(group, reason, now, effects)
    elif group.previous is not State.EMPTY and group.all_joined:
        complete(group, now, effects)


def rebalance(group: "ClassicGroup", reason: str, now: float, effects: Effects) -> None:
    """Ask all members to join again; a group that was empty waits a while for more of them."""
    group.reason = reason
    if group.current is State.COMPLETING:
        for member in group.members.values():
            member.assignment = b""
        answer_syncs(group, Synced(Code.rebalance_in_progress), now, effects)
    group.missing_syncs.clear()
    group.sync_deadline = NEVER
    group.enter(Event.REBALANCE)
    if group.previous is State.EMPTY:
        delay_s = group.rules.initial_delay_ms / 1000
        group.delay_left_s = max(group.rebalance_s - delay_s, 0.0)
        group.newcomers = False
        _wait_for_members(group, delay_s, now, effects)
    elif group.all_joined:
        complete(group, now, effects)
    else:
        _wait_for_members(group, group.rebalance_s, now, effects)


def _wait_for_members(group: "ClassicGroup", seconds: float, now: float, effects: Effects) -> None:
    group.join_deadline = now + seconds
    effects.append(Wake(group.join_deadline))


def join_time_is_over(group: "ClassicGroup", now: float, effects: Effects) -> None:
    """The first rebalance is put off further as long as new members come, within the rebalance timeout."""
    delay_s = min(group.rules.initial_delay_ms / 1000, group.delay_left_s)
    if group.previous is State.EMPTY and group.newcomers and delay_s > 0:
        group.newcomers = False
        group.delay_left_s -= delay_s
        _wait_for_members(group, delay_s, now, effects)
    else:
        complete(group, now, effects)


def complete(group: "ClassicGroup", now: float, effects: Effects) -> None:
    """The next generation begins with those who came. Static members keep their place while their session lasts."""
    group.join_deadline = NEVER
    gone = [m.member_id for m in group.members.values() if m.waiting_join is None and m.instance_id is None]
    for member_id in gone:
        group.remove(member_id)
    if group.members and not _leader_has_joined(group):
        # only static members are left, and none has come: their sessions decide
        _wait_for_members(group, group.rebalance_s, now, effects)
        return
    group.generation += 1
    if group.members:
        _begin_generation(group, now, effects)
    else:
        _desert(group, effects)


def _leader_has_joined(group: "ClassicGroup") -> bool:
    """The leader must be there to assign; if it is not, whoever is takes its place."""
    assert group.leader is not None
    if group.members[group.leader].waiting_join is None:
        present = (member.member_id for member in group.members.values() if member.waiting_join is not None)
        group.leader = next(present, group.leader)
    return group.members[group.leader].waiting_join is not None


def _begin_generation(group: "ClassicGroup", now: float, effects: Effects) -> None:
    group.protocol_name = chosen(group.members.values())
    group.learn_topics()
    group.enter(Event.GATHERED)
    for member in group.members.values():
        answer_join(member, group.joined(member.member_id, members=member.member_id == group.leader), now, effects)
        member.is_new = False
    group.missing_syncs = set(group.members)
    group.sync_deadline = now + group.rebalance_s
    effects.append(Wake(group.sync_deadline))


def _desert(group: "ClassicGroup", effects: Effects) -> None:
    group.protocol_name = None
    group.learn_topics()
    group.enter(Event.DESERTED)
    # If this is lost, the last generation comes back with the log and its sessions end.
    effects.append(Write([group_record(group, {})], lambda code, now: []))


def answer_join(member: Member, answer: Joined, now: float, effects: Effects) -> None:
    if member.waiting_join is not None:
        effects.append(Reply(member.waiting_join, answer))
        member.waiting_join = None
    effects.append(Wake(member.alive(now)))


def answer_syncs(group: "ClassicGroup", answer: Synced, now: float, effects: Effects) -> None:
    """All who wait; with no error each gets its own assignment. Their sessions begin anew: they could not beat."""
    for member in group.members.values():
        if member.waiting_sync is not None:
            own = answer if answer.code is not Code.none else answer._replace(assignment=member.assignment)
            effects.append(Reply(member.waiting_sync, own))
            member.waiting_sync = None
            effects.append(Wake(member.alive(now)))
