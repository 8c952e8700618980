"""Raft without I/O. Pure: a message, a proposal or the time goes in; what to persist and then to send comes out.

    raft.step(message, now) · raft.tick(now) · raft.propose(data, now)      something happened
    ready = raft.ready()                                                   what follows from it
    persist ready.hard_state, ready.snapshot, ready.entries                fsync, before any promise leaves the node
    raft.advance(ready, now)                                               it is on disk
    send ready.messages; apply ready.committed

Between `ready` and `advance` more may happen; it shows in the next `ready`. Roles:

    FOLLOWER --timeout--> PRE_CANDIDATE --majority--> CANDIDATE --majority--> LEADER
        ^---------------- a higher term, a leader of this term, or no contact with a majority ----'

An observer is a follower that is not among the voters: it never stands for election.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ottla.ports import Random
from ottla.raft.core import elections, following, leading
from ottla.raft.core import messages as m
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Entry, EntryKind, HardState, Member, Message, Snapshot, Voters, encode_voters
from ottla.raft.core.progress import Progress
from ottla.raft.core.quorum import change_problem, is_voter
from ottla.raft.core.role import Role

__all__ = ["NotLeader", "Overloaded", "Raft", "RaftConfig", "Ready", "Role", "TooLarge", "VoterChangeRefused"]


class NotLeader(Exception):
    """`leader` is the node to ask instead, None when nobody is known to lead."""

    def __init__(self, leader: int | None) -> None:
        super().__init__(f"node {leader} leads the quorum" if leader is not None else "nobody leads the quorum")
        self.leader = leader


class Overloaded(Exception):
    """Too much is proposed and not committed yet."""


class TooLarge(Exception):
    """An entry that no message to a follower could hold."""


class VoterChangeRefused(Exception):
    """Says why the voters may not be changed like this, or not now."""


class RaftConfig(msgspec.Struct, frozen=True, kw_only=True):
    member: Member
    # An election may take this long, plus up to as much again by chance, before the next.
    election_timeout_s: float = 1.0
    # The same wait while there is a leader, which also steps down when a majority is silent for this long.
    # None: as long as an election.
    leader_timeout_s: float | None = None
    heartbeat_s: float = 0.2
    snapshot_retry_s: float = 10.0
    observer_timeout_s: float = 10.0
    entries_per_message_max: int = 1_000
    bytes_per_message_max: int = 1 << 20
    inflight_messages_max: int = 16
    # Four hundred thousand changes of partitions; less than a message between nodes may have.
    entry_bytes_max: int = 15 << 20
    uncommitted_bytes_max: int = 64 << 20
    committed_entries_per_ready_max: int = 100_000
    observers_max: int = 1_000
    # Entries kept behind a snapshot, so that a follower a little behind does not need the snapshot.
    entries_kept: int = 1_000

    @property
    def silence_s(self) -> float:
        """How long a leader may be silent, or its followers."""
        return self.election_timeout_s if self.leader_timeout_s is None else self.leader_timeout_s


class Ready(msgspec.Struct, frozen=True):
    hard_state: HardState | None
    snapshot: Snapshot | None
    entries: tuple[Entry, ...]
    messages: tuple[Message, ...]
    committed: tuple[Entry, ...]

    @property
    def must_persist(self) -> bool:
        return self.hard_state is not None or self.snapshot is not None or bool(self.entries)


class Raft:
    def __init__(self, config: RaftConfig, *, hard_state: HardState, log: RaftLog, random: Random, now: float) -> None:
        self.config = config
        self.member = config.member
        self.log = log
        self.random = random
        self.now = now
        self.term, self.vote = hard_state.term, hard_state.vote
        self.role = Role.FOLLOWER
        self.leader: int | None = None
        self.leader_heard_at = now
        self.votes: dict[int, bool] = {}
        self.forgetful: dict[int, int] = {}  # members that lost what they acknowledged, and up to where
        self.peers: dict[int, Progress] = {}
        self.heartbeat_deadline = self.quorum_deadline = now
        self.term_start_index = 0
        self.applied = log.snapshot.index
        self.outbox: list[Message] = []
        self._uncommitted_bytes = 0
        self._saved = hard_state
        self._pending_snapshot: Snapshot | None = None
        self._in_flight: Ready | None = None
        self.reset_election_deadline()
        if self.is_sole_voter or not self.may_stand:
            # Nobody to wait for; or nobody will come unless asked.
            self.election_deadline = now

    # -- what happened

    def step(self, message: Message, now: float) -> None:
        self.now = now
        if not _HAS_OWN_TERM_RULE.get(type(message), _accept_term)(self, message):
            return
        handler = _HANDLERS.get((self.role, type(message)))
        if handler is not None:
            handler(self, message)

    def tick(self, now: float) -> None:
        """Call it when `deadline` has passed; earlier or more often does no harm."""
        self.now = now
        if self.role is Role.LEADER:
            leading.tick(self)
        elif now >= self.election_deadline:
            if self.may_stand:
                elections.campaign(self, pre=True)
            else:
                following.ask_to_join(self)

    def deadline(self) -> float:
        if self.role is not Role.LEADER:
            return self.election_deadline
        return min(self.heartbeat_deadline, self.quorum_deadline) if self.peers else math.inf

    def propose(self, batches: Sequence[bytes], now: float) -> int:
        """Append one entry per batch; the index of the last. Committed when it comes out of `ready().committed`."""
        self.now = now
        self._check_leads()
        self._check_sizes(batches)
        self._check_load(sum(map(len, batches)))
        for data in batches:
            self.append(EntryKind.DATA, data)
        leading.broadcast(self)
        return self.log.last_index

    def change_voters(self, voters: Voters, now: float) -> int:
        """Propose a new voter set; the index of its entry."""
        self.now = now
        self._check_leads()
        if not self.is_established:
            raise VoterChangeRefused("this leader has not committed an entry of its own term yet; try again")
        if self.log.voters_index > self.log.commit:
            raise VoterChangeRefused("another change of voters is not committed yet; try again")
        if problem := change_problem(self.log.voters, voters):
            raise VoterChangeRefused(problem)
        self.append(EntryKind.VOTERS, encode_voters(voters))
        leading.follow_voters(self)
        leading.broadcast(self)
        return self.log.last_index

    def hand_over(self, node_id: int, now: float) -> None:
        """Ask a voter that has everything to stand for election at once."""
        self.now = now
        self._check_leads()
        peer = self.peers.get(node_id)
        if peer is None or not is_voter(self.log.voters, peer.member) or peer.match < self.log.last_index:
            raise VoterChangeRefused(f"node {node_id} is not a voter that has the whole log")
        self.send(m.TimeoutNow(self.member, node_id, self.term))

    def leader_gone(self, node_id: int, now: float) -> None:
        """The leader's process has ended: no need to wait for its silence. One after the other, so that votes do not
        split: all learn of it at the same moment."""
        self.now = now
        if self.role is Role.FOLLOWER and self.leader == node_id:
            self.leader = None
            turn = sum(voter.id < self.member.id for voter in self.log.voters if voter.id != node_id)
            # Half a turn for the others to notice too: until then they would not vote.
            self.election_deadline = now + (turn + 0.5 + self.random.random() / 4) * self.config.heartbeat_s / 2

    def compact(self, data: bytes, index: int) -> Snapshot:
        """The state machine's snapshot at `index`, which it has applied. Persist the result before relying on it."""
        term = self.log.term_at(index)
        assert term is not None and index <= self.applied
        return Snapshot(index, term, self.log.voters_at(index), data)

    def compacted(self, snapshot: Snapshot) -> int:
        """The snapshot is on disk. Returns the first entry that is still needed."""
        if snapshot.index > self.log.snapshot.index:
            self.log.compact(snapshot, keep_from=snapshot.index - self.config.entries_kept + 1)
        return self.log.offset + 1

    # -- what follows

    def ready(self) -> Ready | None:
        assert self._in_flight is None, "advance first"
        state = HardState(self.term, self.vote, self._saved.seed)
        ready = Ready(
            hard_state=state if state != self._saved else None,
            snapshot=self._pending_snapshot,
            entries=self.log.unstable(),
            messages=tuple(self.outbox),
            committed=() if self._pending_snapshot else self._to_apply(),
        )
        if not (ready.must_persist or ready.messages or ready.committed):
            return None
        self.outbox.clear()
        self._in_flight = ready
        return ready

    def advance(self, ready: Ready, now: float) -> None:
        assert self._in_flight is ready
        self.now = now
        self._in_flight = None
        if ready.hard_state is not None:
            self._saved = ready.hard_state
        if ready.snapshot is not None:
            self.applied = max(self.applied, ready.snapshot.index)
            if self._pending_snapshot is ready.snapshot:
                self._pending_snapshot = None
        if ready.entries:
            self.log.stable_to(ready.entries[-1].index, ready.entries[-1].term)
        if ready.committed:
            self.applied = max(self.applied, ready.committed[-1].index)
        if self.role is Role.LEADER:
            leading.commit_what_a_majority_has(self)

    def _to_apply(self) -> tuple[Entry, ...]:
        stop = min(self.log.commit, self.log.stable)
        limit = self.config.committed_entries_per_ready_max
        return self.log.slice(start=self.applied + 1, stop=stop, entries_max=limit, bytes_max=1 << 40)

    # -- state that the handlers share

    @property
    def is_voter(self) -> bool:
        return is_voter(self.log.voters, self.member)

    @property
    def may_stand(self) -> bool:
        """A voter whose removal may not be committed still stands: it may be the only one that has that entry."""
        return any(is_voter(voters, self.member) for voters in self.log.voters_possible())

    @property
    def is_sole_voter(self) -> bool:
        return len(self.log.voters) == 1 and self.is_voter

    @property
    def is_established(self) -> bool:
        """Leads, and an entry of its own term is committed: only then does it know what is committed."""
        return self.role is Role.LEADER and self.log.commit >= self.term_start_index

    def send(self, message: Message) -> None:
        self.outbox.append(message)

    def append(self, kind: EntryKind, data: bytes) -> None:
        self.log.append(Entry(self.log.last_index + 1, self.term, kind, data))

    def restore(self, snapshot: Snapshot) -> None:
        self.log.restore(snapshot)
        self._pending_snapshot = snapshot

    def reset_election_deadline(self) -> None:
        wait_s = self.config.election_timeout_s if self.leader is None else self.config.silence_s
        self.election_deadline = self.now + wait_s * (1 + self.random.random())

    def become_follower(self, term: int, leader: int | None) -> None:
        if term > self.term:
            self.term, self.vote = term, None
        self.role, self.leader = Role.FOLLOWER, leader
        self.votes.clear()
        self.peers.clear()
        self.reset_election_deadline()

    def _check_leads(self) -> None:
        if self.role is not Role.LEADER:
            raise NotLeader(self.leader)

    def _check_sizes(self, batches: Sequence[bytes]) -> None:
        limit = self.config.entry_bytes_max
        if any(len(data) > limit for data in batches):
            raise TooLarge(f"an entry has {max(map(len, batches))} bytes, at most {limit} fit into a message")

    def _check_load(self, more_bytes: int) -> None:
        """Counting what waits is left until proposals since the last count could have reached the limit."""
        limit = self.config.uncommitted_bytes_max
        if self._uncommitted_bytes + more_bytes > limit:
            self._uncommitted_bytes = sum(len(entry.data) for entry in self.log.uncommitted())
            if self._uncommitted_bytes + more_bytes > limit:
                raise Overloaded(f"more than {limit} bytes wait to be committed")
        self._uncommitted_bytes += more_bytes


def _accept_term(raft: Raft, message: Message) -> bool:
    """Whether the message belongs to this term, after moving to its term if that is newer."""
    if message.term > raft.term:
        is_leader = isinstance(message, m.Append | m.InstallSnapshot)
        raft.become_follower(message.term, message.source.id if is_leader else None)
    if message.term == raft.term:
        return True
    if isinstance(message, m.Append | m.InstallSnapshot):
        # A leader of the past: our term in the answer tells it to step down.
        raft.send(m.AppendReply(raft.member, message.source.id, raft.term, accepted=False, index=0))
    return False


def _accept_any_term(raft: Raft, message: Message) -> bool:
    return True


_HAS_OWN_TERM_RULE: dict[type[Message], Callable[[Raft, Any], bool]] = {
    m.VoteRequest: elections.accept_request_term,
    m.VoteReply: elections.accept_reply_term,
    m.Join: _accept_any_term,
    m.LeaderHint: _accept_any_term,
}

_HANDLERS: dict[tuple[Role, type[Message]], Callable[[Raft, Any], None]] = {
    **{(role, m.VoteRequest): elections.on_vote_request for role in Role},
    **{(role, m.Join): following.on_join_elsewhere for role in Role},
    **{(role, m.Append): following.on_append for role in Role if role is not Role.LEADER},
    **{(role, m.InstallSnapshot): following.on_snapshot for role in Role if role is not Role.LEADER},
    (Role.FOLLOWER, m.LeaderHint): following.on_leader_hint,
    (Role.PRE_CANDIDATE, m.LeaderHint): following.on_leader_hint,
    (Role.FOLLOWER, m.TimeoutNow): elections.on_timeout_now,
    (Role.PRE_CANDIDATE, m.VoteReply): elections.on_vote_reply,
    (Role.CANDIDATE, m.VoteReply): elections.on_vote_reply,
    (Role.LEADER, m.AppendReply): leading.on_append_reply,
    (Role.LEADER, m.Join): leading.on_join,
}
