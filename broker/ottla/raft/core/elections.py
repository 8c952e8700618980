"""Standing for election and voting. Pure: the part of the core that every role shares."""

from typing import TYPE_CHECKING

from ottla.raft.core import leading
from ottla.raft.core.messages import LeaderHint, TimeoutNow, VoteReply, VoteRequest
from ottla.raft.core.quorum import Tally, is_voter, tally
from ottla.raft.core.role import Role

if TYPE_CHECKING:
    from ottla.raft.core.raft import Raft

__all__ = ["accept_reply_term", "accept_request_term", "campaign", "on_timeout_now", "on_vote_reply", "on_vote_request"]


def campaign(raft: "Raft", *, pre: bool, handover: bool = False) -> None:
    """Pre-vote first: a node that cannot win does not raise the term and so disturbs nobody."""
    raft.reset_election_deadline()
    raft.leader = None
    if pre:
        raft.role = Role.PRE_CANDIDATE
    else:
        raft.role = Role.CANDIDATE
        raft.term, raft.vote = raft.term + 1, raft.member
    raft.votes = {raft.member.id: True}
    if not _count(raft, pre=pre):
        _ask_for_votes(raft, pre=pre, handover=handover)


def _ask_for_votes(raft: "Raft", *, pre: bool, handover: bool) -> None:
    for voter in raft.log.voters:
        if voter.id != raft.member.id:
            raft.send(
                VoteRequest(
                    raft.member,
                    voter.id,
                    raft.term + 1 if pre else raft.term,
                    last_index=raft.log.last_index,
                    last_term=raft.log.last_term,
                    pre=pre,
                    handover=handover,
                )
            )


def _count(raft: "Raft", *, pre: bool) -> bool:
    """Whether the election is decided."""
    result = tally(raft.log.voters, raft.votes)
    if result == Tally.LOST:
        raft.become_follower(raft.term, None)
    elif result == Tally.WON and pre:
        campaign(raft, pre=False)
    elif result == Tally.WON:
        leading.become_leader(raft)
    return result != Tally.OPEN


def accept_request_term(raft: "Raft", message: VoteRequest) -> bool:
    if message.term > raft.term:
        if not message.handover and _hears_a_leader(raft):
            _show_the_leader(raft, message)
            return False
        if not message.pre:
            raft.become_follower(message.term, None)
    elif message.term < raft.term:
        raft.send(VoteReply(raft.member, message.source.id, raft.term, granted=False, pre=message.pre))
        return False
    return True


def _show_the_leader(raft: "Raft", message: VoteRequest) -> None:
    """The asker may have been removed from the voters while it was away: only the leader's log can tell it."""
    if not message.pre:
        return
    if raft.leader == raft.member.id:
        leading.welcome(raft, message.source)
    elif raft.leader is not None:
        raft.send(LeaderHint(raft.member, message.source.id, raft.term, leader=raft.leader))


def _hears_a_leader(raft: "Raft") -> bool:
    """Then an election would only disturb. A leader itself hears a majority, or it would have stepped down."""
    if raft.leader is None:
        return False
    return raft.leader == raft.member.id or raft.now < raft.leader_heard_at + raft.config.silence_s


def on_vote_request(raft: "Raft", message: VoteRequest) -> None:
    free = raft.vote == message.source or (raft.vote is None and raft.leader is None)
    may_grant = free or (message.pre and message.term > raft.term)
    granted = may_grant and raft.log.is_up_to_date(last_index=message.last_index, last_term=message.last_term)
    if granted and not message.pre:
        raft.vote = message.source
        raft.reset_election_deadline()
    # A granted pre-vote answers in the term that was asked about: the asker is not in it yet.
    term = message.term if granted else raft.term
    raft.send(VoteReply(raft.member, message.source.id, term, granted=granted, pre=message.pre))


def accept_reply_term(raft: "Raft", message: VoteReply) -> bool:
    if message.pre and message.granted:
        return message.term == raft.term + 1
    if message.term > raft.term:
        raft.become_follower(message.term, None)
        return False
    return message.term == raft.term


def on_vote_reply(raft: "Raft", message: VoteReply) -> None:
    pre = raft.role is Role.PRE_CANDIDATE
    if message.pre is pre and is_voter(raft.log.voters, message.source):
        raft.votes[message.source.id] = message.granted
        _count(raft, pre=pre)


def on_timeout_now(raft: "Raft", message: TimeoutNow) -> None:
    if raft.may_stand:
        campaign(raft, pre=False, handover=True)
