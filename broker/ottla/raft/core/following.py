"""What a node does that does not lead: take entries and snapshots, or ask to be sent them. Pure."""

from typing import TYPE_CHECKING

from ottla.raft.core.messages import Append, AppendReply, InstallSnapshot, Join, LeaderHint, Message

if TYPE_CHECKING:
    from ottla.raft.core.raft import Raft

__all__ = ["ask_to_join", "on_append", "on_join_elsewhere", "on_leader_hint", "on_snapshot"]


def on_append(raft: "Raft", message: Append) -> None:
    _heard_leader(raft, message)
    log, previous = raft.log, message.previous_index
    if previous and previous < log.commit:
        # Sent before our answers arrived; what is committed is surely the same.
        _accept(raft, message, log.commit)
    elif log.term_at(previous) == message.previous_term or not previous:
        log.merge(message.entries)
        last = previous + len(message.entries)
        log.commit = max(log.commit, min(message.commit, last))
        _accept(raft, message, last)
    else:
        hint_index, hint_term = log.last_at_most(previous, message.previous_term)
        raft.send(
            AppendReply(
                raft.member,
                message.source.id,
                raft.term,
                accepted=False,
                index=previous,
                hint_index=hint_index,
                hint_term=hint_term,
            )
        )


def on_snapshot(raft: "Raft", message: InstallSnapshot) -> None:
    _heard_leader(raft, message)
    log, snapshot = raft.log, message.snapshot
    if snapshot.index > log.commit:
        if log.term_at(snapshot.index) == snapshot.term:
            log.commit = snapshot.index
        else:
            raft.restore(snapshot)
    _accept(raft, message, log.commit)


def _heard_leader(raft: "Raft", message: Message) -> None:
    raft.become_follower(message.term, message.source.id)
    raft.leader_heard_at = raft.now


def _accept(raft: "Raft", message: Message, index: int) -> None:
    raft.send(AppendReply(raft.member, message.source.id, raft.term, accepted=True, index=index))


# -- observers


def ask_to_join(raft: "Raft") -> None:
    """No leader sends us anything: tell all voters that we are here."""
    raft.leader = None
    raft.reset_election_deadline()
    for voter in raft.log.voters:
        if voter.id != raft.member.id:
            raft.send(Join(raft.member, voter.id, raft.term, last_index=raft.log.last_index))


def on_join_elsewhere(raft: "Raft", message: Join) -> None:
    if raft.leader is not None and raft.leader != raft.member.id:
        raft.send(LeaderHint(raft.member, message.source.id, raft.term, leader=raft.leader))


def on_leader_hint(raft: "Raft", message: LeaderHint) -> None:
    """An observer may know too few voters to find the leader by itself, and so may one that still thinks it votes."""
    if raft.leader is None and message.leader != raft.member.id:
        raft.send(Join(raft.member, message.leader, raft.term, last_index=raft.log.last_index))
