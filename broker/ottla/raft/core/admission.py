"""Whether a message is accepted at all, checked before it changes anything. Pure.

Any node may send Join and VoteRequest: a node that is behind does not know the newest voters, and one of those may be
the only one with all committed entries. Messages that change the log or the leader are accepted from trusted members
only: voters of this node's log with their directories, members it voted for, nodes it asked. This does not prove an
identity; certificates do.
"""

from collections import deque
from collections.abc import Collection

from ottla.raft.core import messages as m
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Member, Message
from ottla.raft.core.quorum import find, is_voter

__all__ = ["TERM_JUMP_MAX", "TERM_MAX", "Admission"]

# Terms rise by one per election: a quorum with ten elections per second reaches this after thirteen years. An accepted
# term is on disk for ever, and after the largest number no election is possible.
TERM_JUMP_MAX = 1 << 32
TERM_MAX = (1 << 63) - 1 - TERM_JUMP_MAX
ASKED_MAX = 100
# Election timeouts without a leader after which a node accepts an unknown one.
ROUNDS_ALONE_MIN = 2


class Admission:
    """What this node knows about other members besides its log."""

    def __init__(self, log: RaftLog) -> None:
        self._log = log
        self._asked: deque[int] = deque(maxlen=ASKED_MAX)  # nodes that this one asked for the log
        self._followed: Member | None = None  # the last leader
        self._rounds_alone = 0

    def asked(self, node_id: int) -> None:
        if node_id in self._asked:
            self._asked.remove(node_id)
        self._asked.append(node_id)

    def follows(self, leader: Member) -> None:
        self._followed = leader
        self._rounds_alone = 0

    def leader_timed_out(self) -> None:
        """An election timeout has passed without a leader."""
        self._rounds_alone += 1

    def refusal(self, message: Message, *, term: int, vote: Member | None, peers: Collection[int]) -> str | None:
        """Why the message is dropped, None when it is taken. `peers`: ids of the members that this leader sends to."""
        kind = type(message).__name__
        if isinstance(message, m.Join):
            return None  # it carries only the sender
        if not isinstance(message, m.LeaderHint) and message.term > min(term + TERM_JUMP_MAX, TERM_MAX):
            return f"its {kind} is of term {message.term}, and this node is in term {term}: no quorum elects so often"
        if not self._is_trusted(message, term=term, vote=vote, peers=peers):
            return f"only voters send {kind}, and this node does not know the sender as a voter"
        if isinstance(message, m.Append) and message.term >= term:
            return self._contradiction(message)
        return None

    def may_lead(self, source: Member, *, of_term: int, term: int, vote: Member | None) -> bool:
        """A leader that is no voter in this node's log belongs to a newer voter set. This node follows it if

        - it voted for it in this term, or follows it already (a leader that removed itself hands over last);
        - it asked it for the log, as a voter's hint said: a node without a leader asks the voters that it knows;
        - it has had no leader for two election timeouts. All voters that it knows may be gone; then only the new leader
          can tell. A stranger is accepted then too, but not while the quorum works.
        """
        if any(is_voter(voters, source) for voters in self._log.voters_possible()):
            return True
        if of_term == term and source in (vote, self._followed):
            return True
        return source.id in self._asked or self._rounds_alone >= ROUNDS_ALONE_MIN

    def may_hint(self, source: Member) -> bool:
        """Voters are asked by id, for votes and for the log, so a hint may come from a newer directory of that id."""
        return find(self._log.voters, source.id) is not None or source.id in self._asked

    def _is_trusted(self, message: Message, *, term: int, vote: Member | None, peers: Collection[int]) -> bool:
        source = message.source
        match message:
            case m.VoteRequest():
                # Not while this node has a leader: then a known voter must name the new one.
                return not message.handover or self.may_lead(source, of_term=message.term, term=term, vote=vote)
            case m.VoteReply() | m.LeaderHint():
                return self.may_hint(source)
            case m.AppendReply():
                # Also from observers. One may have a newer term, from an election that it lost before it was removed: a
                # leader that does not adopt that term could never send it the log again.
                return source.id in peers or find(self._log.voters, source.id) is not None
        return self.may_lead(source, of_term=message.term, term=term, vote=vote)

    def _contradiction(self, message: m.Append) -> str | None:
        """A leader of this or a later term has all committed entries, and sends entries with consecutive indexes."""
        log, index, term = self._log, message.previous_index, message.previous_term
        if index < 0 or (index <= log.commit and log.term_at(index) not in (None, term) and index > 0):
            return self._commit_conflict(index, term)
        for entry in message.entries:
            if entry.index != index + 1 or not term <= entry.term <= message.term:
                return f"its Append has entry {entry.index} of term {entry.term} after entry {index} of term {term}"
            index, term = entry.index, entry.term
            if index <= log.commit and log.term_at(index) not in (None, term):
                return self._commit_conflict(index, term)
        return None

    def _commit_conflict(self, index: int, term: int) -> str:
        return (
            f"its Append has entry {index} of term {term}, and here that entry is committed with term "
            f"{self._log.term_at(index)}: one of the two logs is not of this quorum, see DescribeQuorum for which. "
            "Stop that node, remove its metadata log and start it, and it gets the log from the leader"
        )
