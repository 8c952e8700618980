"""Elections from one member's side: its role, how it stands for election, votes, follows a leader, steps down. Pure.

    FOLLOWER --timeout--> PRE_CANDIDATE --majority--> CANDIDATE --majority--> LEADER
        ^---------------- a higher term, a leader of this term, or no contact with a majority ----'

An observer is a follower that is not among the voters: it never stands for election.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

from ottla.ports import Random
from ottla.raft.core import messages as m
from ottla.raft.core.admission import Admission
from ottla.raft.core.config import RaftConfig
from ottla.raft.core.leading import Leadership
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import HardState, Member, Message
from ottla.raft.core.quorum import Tally, is_voter, tally

__all__ = ["Elections", "Role"]


class Role(Enum):
    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre-candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


class Elections:
    """Invariant: `leadership` is set exactly while the role is LEADER, and belongs to the current term.

    `outbox` holds messages to send once the term and the vote are on disk. `losses` maps each member that lost entries
    it had acknowledged to the index of the last one.
    """

    def __init__(self, config: RaftConfig, *, hard_state: HardState, log: RaftLog, random: Random, now: float) -> None:
        self.config = config
        self.member = config.member
        self.log = log
        self.now = now
        self.term, self.vote = hard_state.term, hard_state.vote
        self.role = Role.FOLLOWER
        self.leader: int | None = None
        self.leadership: Leadership | None = None
        self.outbox: list[Message] = []
        self.losses: dict[int, int] = {}
        self._random = random
        self._admission = Admission(log)
        self._leader_heard_at = now
        self._votes: dict[int, bool] = {}
        self._election_deadline = now
        self._reset_election_deadline()
        if self.is_sole_voter or not self.may_stand:
            # A sole voter elects itself; an observer has to ask for the log.
            self._election_deadline = now

    @property
    def is_voter(self) -> bool:
        return is_voter(self.log.voters, self.member)

    @property
    def may_stand(self) -> bool:
        """A voter whose removal may be uncommitted still stands: it may be the only one that has that entry."""
        return any(is_voter(voters, self.member) for voters in self.log.voters_possible())

    @property
    def is_sole_voter(self) -> bool:
        return len(self.log.voters) == 1 and self.is_voter

    # -- events

    def step(self, message: Message, now: float) -> str | None:
        """Process a message. Returns why it was dropped, or None."""
        self.now = now
        peers = self.leadership.peers if self.leadership is not None else ()
        if refusal := self._admission.refusal(message, term=self.term, vote=self.vote, peers=peers):
            return refusal
        if not _HAS_OWN_TERM_RULE.get(type(message), Elections._accept_term)(self, message):
            return None
        handler = _HANDLERS.get((self.role, type(message)))
        if handler is not None:
            handler(self, message)
        return None

    def may_lead(self, source: Member, term: int) -> bool:
        return self._admission.may_lead(source, of_term=term, term=self.term, vote=self.vote)

    def may_hint(self, source: Member) -> bool:
        return self._admission.may_hint(source)

    def tick(self, now: float) -> None:
        """Call when `deadline` has passed; earlier or repeated calls do no harm."""
        self.now = now
        if self.leadership is not None:
            if not self.leadership.tick(now):
                self._become_follower(self.term, None)
        elif now >= self._election_deadline:
            self._admission.leader_timed_out()
            if self.may_stand:
                self._campaign(pre=True)
            else:
                self._ask_to_join()

    def deadline(self) -> float:
        return self._election_deadline if self.leadership is None else self.leadership.deadline()

    def leader_gone(self, node_id: int, now: float) -> None:
        """The leader's process has ended, so there is no need to wait for the time-out. The followers start elections
        one after the other: all learn of it at the same moment, and votes would split."""
        self.now = now
        if self.role is Role.FOLLOWER and self.leader == node_id:
            self.leader = None
            turn = sum(voter.id < self.member.id for voter in self.log.voters if voter.id != node_id)
            # Half a step later, so that the other followers have noticed too: before that they would not vote.
            self._election_deadline = now + (turn + 0.5 + self._random.random() / 4) * self.config.heartbeat_s / 2

    # -- terms

    def _accept_term(self, message: Message) -> bool:
        """Whether the message belongs to this term, after moving to its term if that is newer."""
        if message.term > self.term:
            is_leader = isinstance(message, m.Append | m.InstallSnapshot)
            self._become_follower(message.term, message.source.id if is_leader else None)
        if message.term == self.term:
            return True
        if isinstance(message, m.Append | m.InstallSnapshot):
            # A leader of an old term: it learns from our term in the answer that it has to step down.
            self._send(m.AppendReply(self.member, message.source.id, self.term, accepted=False, index=0))
        return False

    def _accept_any_term(self, message: Message) -> bool:
        return True

    def _accept_request_term(self, message: m.VoteRequest) -> bool:
        if message.term > self.term:
            if not message.handover and self._hears_leader():
                self._point_to_leader(message)
                return False
            if not message.pre:
                self._become_follower(message.term, None)
        elif message.term < self.term:
            self._send(m.VoteReply(self.member, message.source.id, self.term, granted=False, pre=message.pre))
            return False
        return True

    def _accept_reply_term(self, message: m.VoteReply) -> bool:
        if message.pre and message.granted:
            return message.term == self.term + 1
        if message.term > self.term:
            self._become_follower(message.term, None)
            return False
        return message.term == self.term

    def _hears_leader(self) -> bool:
        """Then an election would only disrupt. A leader hears a majority, otherwise it would have stepped down."""
        if self.leader is None:
            return False
        return self.leader == self.member.id or self.now < self._leader_heard_at + self.config.silence_s

    def _point_to_leader(self, message: m.VoteRequest) -> None:
        """The sender may have been removed from the voters while it was down: only the leader can tell it."""
        if not message.pre:
            return
        if self.leadership is not None:
            self.leadership.welcome(message.source, self.now)
        elif self.leader is not None:
            self._send(m.LeaderHint(self.member, message.source.id, self.term, leader=self.leader))

    # -- elections

    def _campaign(self, *, pre: bool, handover: bool = False) -> None:
        """Pre-vote first: a node that cannot win does not raise the term, so it does not disrupt the quorum."""
        self._reset_election_deadline()
        self.leader = None
        if pre:
            self.role = Role.PRE_CANDIDATE
        else:
            self.role = Role.CANDIDATE
            self.term, self.vote = self.term + 1, self.member
        self._votes = {self.member.id: True}
        if not self._count(pre=pre):
            self._ask_for_votes(pre=pre, handover=handover)

    def _ask_for_votes(self, *, pre: bool, handover: bool) -> None:
        term = self.term + 1 if pre else self.term
        index, last_term = self.log.last_index, self.log.last_term
        for voter in self.log.voters:
            if voter.id != self.member.id:
                self._send(m.VoteRequest(self.member, voter.id, term, index, last_term, pre=pre, handover=handover))

    def _count(self, *, pre: bool) -> bool:
        """Whether the election is decided."""
        result = tally(self.log.voters, self._votes)
        if result == Tally.LOST:
            self._become_follower(self.term, None)
        elif result == Tally.WON and pre:
            self._campaign(pre=False)
        elif result == Tally.WON:
            self._become_leader()
        return result != Tally.OPEN

    def _on_vote_request(self, message: m.VoteRequest) -> None:
        free = self.vote == message.source or (self.vote is None and self.leader is None)
        may_grant = free or (message.pre and message.term > self.term)
        granted = may_grant and self.log.is_up_to_date(last_index=message.last_index, last_term=message.last_term)
        if granted and not message.pre:
            self.vote = message.source
            self._reset_election_deadline()
        # A granted pre-vote carries the requested term, which the candidate has not entered yet.
        term = message.term if granted else self.term
        self._send(m.VoteReply(self.member, message.source.id, term, granted=granted, pre=message.pre))

    def _on_vote_reply(self, message: m.VoteReply) -> None:
        pre = self.role is Role.PRE_CANDIDATE
        if message.pre is pre and is_voter(self.log.voters, message.source):
            self._votes[message.source.id] = message.granted
            self._count(pre=pre)

    def _on_timeout_now(self, message: m.TimeoutNow) -> None:
        if self.may_stand:
            self._campaign(pre=False, handover=True)

    # -- leading

    def _become_leader(self) -> None:
        self.role, self.leader = Role.LEADER, self.member.id
        self.leadership = Leadership(
            self.config, term=self.term, log=self.log, send=self._send, on_loss=self._lost_entries, now=self.now
        )
        self.leadership.begin(self._votes, self.now)

    def _lost_entries(self, node_id: int, last_index: int) -> None:
        self.losses[node_id] = last_index

    def take_losses(self) -> dict[int, int]:
        """Members that lost acknowledged entries since the last call."""
        taken, self.losses = self.losses, {}
        return taken

    def _on_append_reply(self, message: m.AppendReply) -> None:
        assert self.leadership is not None
        if not self.leadership.on_append_reply(message, self.now):
            self._step_down_as_removed()

    def _on_join(self, message: m.Join) -> None:
        assert self.leadership is not None
        self.leadership.welcome(message.source, self.now)

    def _commit(self) -> None:
        if self.leadership is not None and not self.leadership.commit(self.now):
            self._step_down_as_removed()

    def _step_down_as_removed(self) -> None:
        """Step down as a removed leader. An observer has to ask for the log; it waits until there is a leader to
        ask."""
        self._become_follower(self.term, None)
        self._election_deadline = self.now + self.config.heartbeat_s

    # -- following

    def _become_follower(self, term: int, leader: int | None) -> None:
        if term > self.term:
            self.term, self.vote = term, None
        self.role, self.leader, self.leadership = Role.FOLLOWER, leader, None
        self._votes.clear()
        self._reset_election_deadline()

    def _reset_election_deadline(self) -> None:
        wait_s = self.config.election_timeout_s if self.leader is None else self.config.silence_s
        self._election_deadline = self.now + wait_s * (1 + self._random.random())

    def _on_append(self, message: m.Append) -> None:
        self._heard_leader(message)
        log, previous = self.log, message.previous_index
        if previous and previous < log.commit:
            # Sent before our answers arrived; committed entries are the same in both logs.
            self._accept(message, log.commit)
        elif log.term_at(previous) == message.previous_term or not previous:
            log.merge(message.entries)
            last = previous + len(message.entries)
            log.commit_to(min(message.commit, last))
            self._accept(message, last)
        else:
            index, term = log.last_at_most(previous, message.previous_term)
            refusal = m.AppendReply(
                self.member,
                message.source.id,
                self.term,
                accepted=False,
                index=previous,
                hint_index=index,
                hint_term=term,
            )
            self._send(refusal)

    def _on_snapshot(self, message: m.InstallSnapshot) -> None:
        self._heard_leader(message)
        log, snapshot = self.log, message.snapshot
        if snapshot.index > log.commit:
            if log.term_at(snapshot.index) == snapshot.term:
                log.commit_to(snapshot.index)
            else:
                log.restore(snapshot)
        self._accept(message, log.commit)

    def _heard_leader(self, message: Message) -> None:
        self._become_follower(message.term, message.source.id)
        self._admission.follows(message.source)
        self._leader_heard_at = self.now

    def _accept(self, message: Message, index: int) -> None:
        self._send(m.AppendReply(self.member, message.source.id, self.term, accepted=True, index=index))

    # -- observers

    def _ask_to_join(self) -> None:
        """No leader sends us anything: ask all voters for the log."""
        self.leader = None
        self._reset_election_deadline()
        for voter in self.log.voters:
            if voter.id != self.member.id:
                self._join(voter.id)

    def _on_join_elsewhere(self, message: m.Join) -> None:
        if self.leader is not None and self.leader != self.member.id:
            self._send(m.LeaderHint(self.member, message.source.id, self.term, leader=self.leader))

    def _on_leader_hint(self, message: m.LeaderHint) -> None:
        """An observer, or a removed voter that does not know it yet, may know too few voters to find the leader."""
        if self.leader is None and message.leader != self.member.id:
            self._join(message.leader)

    def _join(self, node_id: int) -> None:
        self._admission.asked(node_id)
        self._send(m.Join(self.member, node_id, self.term, last_index=self.log.last_index))

    def _send(self, message: Message) -> None:
        self.outbox.append(message)


_HAS_OWN_TERM_RULE: dict[type[Message], Callable[[Elections, Any], bool]] = {
    m.VoteRequest: Elections._accept_request_term,
    m.VoteReply: Elections._accept_reply_term,
    m.Join: Elections._accept_any_term,
    m.LeaderHint: Elections._accept_any_term,
}

_HANDLERS: dict[tuple[Role, type[Message]], Callable[[Elections, Any], None]] = {
    **{(role, m.VoteRequest): Elections._on_vote_request for role in Role},
    **{(role, m.Join): Elections._on_join_elsewhere for role in Role if role is not Role.LEADER},
    **{(role, m.Append): Elections._on_append for role in Role if role is not Role.LEADER},
    **{(role, m.InstallSnapshot): Elections._on_snapshot for role in Role if role is not Role.LEADER},
    (Role.FOLLOWER, m.LeaderHint): Elections._on_leader_hint,
    (Role.PRE_CANDIDATE, m.LeaderHint): Elections._on_leader_hint,
    (Role.FOLLOWER, m.TimeoutNow): Elections._on_timeout_now,
    (Role.PRE_CANDIDATE, m.VoteReply): Elections._on_vote_reply,
    (Role.CANDIDATE, m.VoteReply): Elections._on_vote_reply,
    (Role.LEADER, m.AppendReply): Elections._on_append_reply,
    (Role.LEADER, m.Join): Elections._on_join,
}
