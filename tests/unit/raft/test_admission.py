"""What is dropped because of who sent it or what it says, and what must not be: newer voters than the log knows."""

import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from ottla.errors import Refusal
from ottla.raft.core import messages as m
from ottla.raft.core.admission import TERM_JUMP_MAX, TERM_MAX
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Entry, EntryKind, HardState, Member, Message, Snapshot, Voter
from ottla.raft.core.raft import Raft, RaftConfig
from ottla.raft.store import RaftStore
from ottla.system import System


def member(node: int, directory: int | None = None) -> Member:
    return Member(node, uuid.UUID(int=directory or node))


VOTERS = tuple(Voter(node, uuid.UUID(int=node)) for node in (1, 2, 3))
STRANGER = member(99)


def entry(index: int, term: int) -> Entry:
    return Entry(index, term, EntryKind.DATA, b"x")


def follower(*, term: int = 4, commit: int = 2) -> Raft:
    """Node 1 with three entries, and node 2 as its leader."""
    log = RaftLog(snapshot=Snapshot(0, 0, VOTERS, b""), offset=0, offset_term=0, entries=[entry(i, 4) for i in (1, 2)])
    raft = Raft(RaftConfig(member=member(1)), hard_state=HardState(term), log=log, random=Random(1), now=0.0)
    assert raft.step(m.Append(member(2), 1, term, 2, 4, (entry(3, 4),), commit), 0.0) is None
    settle(raft)
    return raft


def settle(raft: Raft) -> list[Message]:
    sent: list[Message] = []
    while (ready := raft.ready()) is not None:
        sent += ready.messages
        raft.advance(ready, raft.now)
    return sent


@pytest.mark.parametrize("source", [STRANGER, member(3, directory=77)])
@pytest.mark.parametrize(
    "make",
    [
        lambda source: m.Append(source, 1, 9, 3, 4, (entry(4, 9),), 4),
        lambda source: m.InstallSnapshot(source, 1, 9, Snapshot(9, 9, VOTERS, b"")),
        lambda source: m.TimeoutNow(source, 1, 4),
    ],
)
def test_what_leads_is_taken_from_voters_only_with_the_directory_that_the_log_knows(
    source: Member, make: Callable[[Member], Message]
) -> None:
    raft = follower()
    assert raft.step(make(source), 0.1) is not None
    assert (raft.term, raft.leader, raft.log.last_index, settle(raft)) == (4, 2, 3, [])
    assert raft.step(make(member(3)), 0.1) is None


@pytest.mark.parametrize(
    "message",
    [
        m.AppendReply(STRANGER, 1, 9, accepted=False, index=0),
        m.VoteReply(STRANGER, 1, 9, granted=False),
        m.VoteRequest(STRANGER, 1, 9, last_index=9, last_term=9, handover=True),
        m.LeaderHint(STRANGER, 1, 9, leader=99),
    ],
)
def test_a_stranger_moves_no_term_while_a_leader_is_heard(message: Message) -> None:
    raft = follower()
    assert raft.step(message, 0.1) is not None
    assert (raft.term, raft.leader) == (4, 2)


def test_a_candidate_that_the_log_does_not_know_is_voted_for_and_then_followed() -> None:
    """It may be a newer voter, and the only one left that has everything committed."""
    raft = follower()
    assert raft.step(m.VoteRequest(STRANGER, 1, 5, last_index=9, last_term=4), 60.0) is None
    assert [reply.granted for reply in settle(raft) if isinstance(reply, m.VoteReply)] == [True]
    assert raft.step(m.Append(STRANGER, 1, 5, 3, 4, (entry(4, 5),), 2), 60.1) is None
    assert raft.leader == 99
    # It removes itself, and hands over last.
    assert raft.step(m.TimeoutNow(STRANGER, 1, 5), 60.2) is None


def test_a_leader_that_a_voter_has_named_is_followed() -> None:
    raft = follower()
    raft.tick(raft.deadline())
    append = m.Append(STRANGER, 1, 5, 3, 4, (), 2)
    assert raft.step(append, raft.now) is not None
    assert raft.step(m.LeaderHint(member(3), 1, 5, leader=99), raft.now) is None
    assert any(isinstance(message, m.Join) and message.target == 99 for message in settle(raft))
    assert raft.step(append, raft.now) is None


def test_a_node_whose_voters_are_all_gone_follows_a_leader_that_nobody_can_name() -> None:
    raft = follower()
    append = m.Append(STRANGER, 1, 5, 3, 4, (), 2)
    for refused in (True, True, False):
        assert (raft.step(append, raft.now) is not None) is refused
        raft.tick(raft.deadline())


@pytest.mark.parametrize(
    ("previous", "previous_term", "entries"),
    [
        (1, 4, (entry(2, 5),)),  # another entry in the place of a committed one
        (0, 0, (entry(1, 3),)),
        (2, 3, ()),
        (3, 4, (entry(5, 5),)),  # a gap
        (3, 4, (entry(4, 6),)),  # of a term that has not come yet
        (3, 4, (entry(4, 3),)),  # terms never fall
        (-1, 4, (entry(0, 4),)),
    ],
)
def test_an_append_that_contradicts_what_is_committed_or_itself_is_dropped(
    previous: int, previous_term: int, entries: tuple[Entry, ...]
) -> None:
    raft = follower()
    assert raft.step(m.Append(member(2), 1, 5, previous, previous_term, entries, 3), 0.1) is not None
    assert (raft.term, [raft.log.term_at(index) for index in (1, 2, 3)]) == (4, [4, 4, 4])


@pytest.mark.parametrize("term", [4 + TERM_JUMP_MAX + 1, (1 << 63) - 1])
def test_a_term_that_no_quorum_reaches_is_not_believed_even_of_a_voter(term: int) -> None:
    raft = follower()
    for message in (
        m.AppendReply(member(2), 1, term, accepted=False, index=0),
        m.VoteRequest(member(3), 1, term, 9, 9, handover=True),
        m.Append(member(3), 1, term, 3, 4, (), 0),
    ):
        assert raft.step(message, 0.1) is not None
    assert raft.term == 4


def test_a_node_with_such_a_term_on_disk_says_what_to_do(tmp_path: Path) -> None:
    store = RaftStore(System().disk, str(tmp_path))
    store.load(VOTERS)
    store.persist(HardState(TERM_MAX, None, VOTERS), None, ())
    assert store.load(VOTERS).hard_state.term == TERM_MAX
    store.persist(HardState(TERM_MAX + 1, None, VOTERS), None, ())
    with pytest.raises(Refusal, match=r"restore it from a backup or, in a quorum of several, remove"):
        store.load(VOTERS)
