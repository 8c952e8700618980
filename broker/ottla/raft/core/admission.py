"""Whether a message may be taken at all, asked before it changes anything. Pure.

Anybody may ask to follow (Join), and to be voted for: a node that is behind does not know the newest voters, and of
those one may be the only one that has everything committed. What moves the log or the lead is taken from members that
this node has reason to believe: voters of its log with their directories, whom it voted for, whom it asked. Nothing
here proves an identity; that takes certificates.
"""

from collections import deque
from collections.abc import Collection

from ottla.raft.core import messages as m
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Member, Message
from ottla.raft.core.quorum import find, is_voter

__all__ = ["TERM_JUMP_MAX", "TERM_MAX", "Admission"]

# Terms rise by one per election: a quorum that elects ten times a second reaches this after thirteen years. A term that
# was believed once is on disk for good, and behind the largest number no election is possible.
TERM_JUMP_MAX = 1 << 32
TERM_MAX = (1 << 63) - 1 - TERM_JUMP_MAX
ASKED_MAX = 100
# Election timeouts without a leader after which a node believes one that it does not know.
ROUNDS_ALONE_MIN = 2


class Admission:
    """What this node knows about others besides its log."""

    def __init__(self, log: RaftLog) -> None:
        self._log = log
        self._asked: deque[int] = deque(maxlen=ASKED_MAX)  # nodes that this one asked for what it lacks
        self._followed: Member | None = None  # the last leader
        self._rounds_alone = 0

    def asked(self, node_id: int) -> None:
        if node_id in self._asked:
            self._asked.remove(node_id)
        self._asked.append(node_id)

    def follows(self, leader: Member) -> None:
        self._followed = leader
        self._rounds_alone = 0

    def hears_nobody(self) -> None:
        """An election timeout has passed without a leader."""
        self._rounds_alone += 1

    def refusal(self, message: Message, *, term: int, vote: Member | None, peers: Collection[int]) -> str | None:
        """Why the message is dropped, None when it is taken. `peers`: ids of the members that this leader sends to."""
        kind = type(message).__name__
        if isinstance(message, m.Join):
            return None  # says nothing but who asks
        if not isinstance(message, m.LeaderHint) and message.term > min(term + TERM_JUMP_MAX, TERM_MAX):
            return f"its {kind} is of term {message.term}, and this node is in term {term}: no quorum elects so often"
        if not self._is_believed(message, term=term, vote=vote, peers=peers):
            return f"its {kind} is one that voters send, and this node knows no reason to believe that it is one"
        if isinstance(message, m.Append) and message.term >= term:
            return self._contradiction(message)
        return None

    def may_lead(self, source: Member, *, of_term: int, term: int, vote: Member | None) -> bool:
        """A leader that the log does not know as a voter is one of a newer set of voters. This node follows it when

        - it voted for it in this very term, or follows it already (a leader that removed itself hands over last);
        - it asked it for the log, as a voter's hint said: a node that hears no leader asks the voters that it knows;
        - it has heard of no leader for two election timeouts. All the voters that it knows may be gone, and then only
          the new leader can tell. A stranger is believed then too, but not while the quorum works.
        """
        if any(is_voter(voters, source) for voters in self._log.voters_possible()):
            return True
        if of_term == term and source in (vote, self._followed):
            return True
        return source.id in self._asked or self._rounds_alone >= ROUNDS_ALONE_MIN

    def may_hint(self, source: Member) -> bool:
        """Voters are asked by id, for votes and for the log: a hint may come from one with a newer directory."""
        return find(self._log.voters, source.id) is not None or source.id in self._asked

    def _is_believed(self, message: Message, *, term: int, vote: Member | None, peers: Collection[int]) -> bool:
        source = message.source
        match message:
            case m.VoteRequest():
                # Not in place of a leader that is heard: that takes the leader's word, which a known voter gets.
                return not message.handover or self.may_lead(source, of_term=message.term, term=term, vote=vote)
            case m.VoteReply() | m.LeaderHint():
                return self.may_hint(source)
            case m.AppendReply():
                # Also of observers. One may have a newer term, from an election it lost before it was removed: a
                # leader that did not take it over could never send it the log again.
                return source.id in peers or find(self._log.voters, source.id) is not None
        return self.may_lead(source, of_term=message.term, term=term, vote=vote)

    def _contradiction(self, message: m.Append) -> str | None:
        """A leader of this term or a later one has everything that is committed, and sends its entries in a row."""
        log, index, term = self._log, message.previous_index, message.previous_term
        if index < 0 or (index <= log.commit and log.term_at(index) not in (None, term) and index > 0):
            return self._committed_differently(index, term)
        for entry in message.entries:
            if entry.index != index + 1 or not term <= entry.term <= message.term:
                return f"its Append has entry {entry.index} of term {entry.term} behind entry {index} of term {term}"
            index, term = entry.index, entry.term
            if index <= log.commit and log.term_at(index) not in (None, term):
                return self._committed_differently(index, term)
        return None

    def _committed_differently(self, index: int, term: int) -> str:
        return (
            f"its Append has entry {index} of term {term}, and here that entry is committed with term "
            f"{self._log.term_at(index)}: one of the two logs is not of this quorum, see DescribeQuorum for which. "
            "Stop that node, remove its metadata log and start it, and it gets the log from the leader"
        )
