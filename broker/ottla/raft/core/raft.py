"""Raft without I/O. Pure: a message, a proposal or the time goes in; what to persist and then to send comes out.

    raft.step(message, now) · raft.tick(now) · raft.propose(data, now)      something happened
    ready = raft.ready()                                                   what follows from it
    persist ready.hard_state, ready.snapshot, ready.entries                fsync, before any promise leaves the node
    raft.advance(ready, now)                                               it is on disk
    send ready.messages; apply ready.committed

Between `ready` and `advance` more may happen; it shows in the next `ready`. How a message changes this member's role is
in elections.py, what a leader does in leading.py.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ottla.ports import Random
from ottla.raft.core.config import RaftConfig
from ottla.raft.core.elections import Elections, Role
from ottla.raft.core.leading import Leadership
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Entry, HardState, Message, Snapshot, Voters
from ottla.raft.core.progress import Progress
from ottla.raft.core.quorum import change_problem

__all__ = ["NotLeader", "Overloaded", "Raft", "RaftConfig", "Ready", "Role", "TooLarge", "VoterChangeRefused"]


class NotLeader(Exception):
    """`leader` is the node to ask instead; None if no leader is known."""

    def __init__(self, leader: int | None) -> None:
        super().__init__(f"node {leader} leads the quorum" if leader is not None else "nobody leads the quorum")
        self.leader = leader


class Overloaded(Exception):
    """Too many bytes are proposed and not committed yet."""


class TooLarge(Exception):
    """The entry is too large for a message to a follower."""


class VoterChangeRefused(Exception):
    """The message says why the voters cannot be changed like this, or not now."""


class Ready(msgspec.Struct, frozen=True):
    hard_state: HardState | None
    snapshot: Snapshot | None
    entries: tuple[Entry, ...]
    messages: tuple[Message, ...]
    committed: tuple[Entry, ...]

    @property
    def must_persist(self) -> bool:
        return self.hard_state is not None or self.snapshot is not None or bool(self.entries)


class Raft(Elections):
    """Invariants: applied <= log.commit; at most one `Ready` is out at a time."""

    def __init__(self, config: RaftConfig, *, hard_state: HardState, log: RaftLog, random: Random, now: float) -> None:
        super().__init__(config, hard_state=hard_state, log=log, random=random, now=now)
        self.applied = log.snapshot.index
        self._uncommitted_bytes = 0
        self._saved = hard_state
        self._in_flight: Ready | None = None

    # -- requests to the leader

    def propose(self, batches: Sequence[bytes], now: float) -> int:
        """Append one entry per batch. Returns the index of the last; it is committed when `ready().committed` has
        it."""
        self.now = now
        leadership = self._require_leadership()
        self._check_sizes(batches)
        self._check_load(sum(map(len, batches)))
        leadership.propose(batches, now)
        return self.log.last_index

    def change_voters(self, voters: Voters, now: float) -> int:
        """Propose a new voter set. Returns the index of its entry."""
        self.now = now
        leadership = self._require_leadership()
        if not self.is_established:
            raise VoterChangeRefused("this leader has not committed an entry of its own term yet; try again")
        if self.log.voters_index > self.log.commit:
            raise VoterChangeRefused("another change of voters is not committed yet; try again")
        if problem := change_problem(self.log.voters, voters):
            raise VoterChangeRefused(problem)
        leadership.change_voters(voters, now)
        return self.log.last_index

    def hand_over(self, node_id: int, now: float) -> None:
        """Ask a voter with the whole log to stand for election at once."""
        self.now = now
        if not self._require_leadership().hand_over(node_id):
            raise VoterChangeRefused(f"node {node_id} is not a voter that has the whole log")

    @property
    def is_established(self) -> bool:
        """Leads, and an entry of its own term is committed: only then does it know the commit index."""
        return self.leadership is not None and self.log.commit >= self.leadership.term_start_index

    @property
    def has_applied_own_term(self) -> bool:
        """Established, and everything committed before its term is applied here."""
        return self.is_established and self.applied >= self._require_leadership().term_start_index

    @property
    def peers(self) -> Mapping[int, Progress]:
        """The other members as the leader sees them; empty where another node leads."""
        return self.leadership.peers if self.leadership is not None else {}

    def successor(self) -> Progress | None:
        """The voter that should lead next; None if this node does not lead."""
        return self.leadership.successor() if self.leadership is not None else None

    def _require_leadership(self) -> Leadership:
        if self.leadership is None:
            raise NotLeader(self.leader)
        return self.leadership

    def _check_sizes(self, batches: Sequence[bytes]) -> None:
        limit = self.config.entry_bytes_max
        if any(len(data) > limit for data in batches):
            raise TooLarge(f"an entry has {max(map(len, batches))} bytes, at most {limit} fit into a message")

    def _check_load(self, more_bytes: int) -> None:
        """The exact sum is recomputed only when proposals since the last time could have reached the limit."""
        limit = self.config.uncommitted_bytes_max
        if self._uncommitted_bytes + more_bytes > limit:
            self._uncommitted_bytes = sum(len(entry.data) for entry in self.log.uncommitted())
            if self._uncommitted_bytes + more_bytes > limit:
                raise Overloaded(f"more than {limit} bytes wait to be committed")
        self._uncommitted_bytes += more_bytes

    # -- snapshots of the applied state

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

    # -- results

    def ready(self) -> Ready | None:
        assert self._in_flight is None, "advance first"
        state = HardState(self.term, self.vote, self._saved.seed)
        ready = Ready(
            hard_state=state if state != self._saved else None,
            snapshot=self.log.unstable_snapshot,
            entries=self.log.unstable(),
            messages=tuple(self.outbox),
            committed=() if self.log.unstable_snapshot else self._to_apply(),
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
            self.log.snapshot_stable(ready.snapshot)
        if ready.entries:
            self.log.stable_to(ready.entries[-1].index, ready.entries[-1].term)
        if ready.committed:
            self.applied = max(self.applied, ready.committed[-1].index)
        self._commit()

    def _to_apply(self) -> tuple[Entry, ...]:
        stop = min(self.log.commit, self.log.stable)
        limit = self.config.committed_entries_per_ready_max
        return self.log.slice(start=self.applied + 1, stop=stop, entries_max=limit, bytes_max=1 << 40)
