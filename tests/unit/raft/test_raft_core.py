"""Rules of the core that simulations reach seldom, and the arithmetic under it."""

import itertools
import uuid
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.raft.core import messages as m
from ottla.raft.core.elections import Role
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import ANY_DIRECTORY, Entry, EntryKind, HardState, Member, Snapshot, Voter
from ottla.raft.core.quorum import Tally, change_problem, committed_index, tally
from ottla.raft.core.raft import NotLeader, Overloaded, Raft, RaftConfig, Ready, TooLarge


def directory(node: int) -> uuid.UUID:
    return uuid.UUID(int=node)


def member(node: int) -> Member:
    return Member(node, directory(node))


VOTERS = tuple(Voter(node, directory(node)) for node in (1, 2, 3))


def entry(index: int, term: int, data: bytes = b"x") -> Entry:
    return Entry(index, term, EntryKind.DATA, data)


def make(terms: list[int], *, term: int = 0, voters: tuple[Voter, ...] = VOTERS, **limits: int) -> Raft:
    """Node 1 with entries of these terms on disk."""
    log = RaftLog(
        snapshot=Snapshot(0, 0, voters, b""),
        offset=0,
        offset_term=0,
        entries=[entry(index, each) for index, each in enumerate(terms, 1)],
    )
    config = RaftConfig(member=member(1), **limits)  # type: ignore[arg-type]
    return Raft(config, hard_state=HardState(term or max(terms, default=0)), log=log, random=Random(1), now=0.0)


def settle(raft: Raft) -> list[Ready]:
    """Everything that is ready, as if the disk were infinitely fast."""
    done = []
    while (ready := raft.ready()) is not None:
        done.append(ready)
        raft.advance(ready, raft.now)
    return done


def sent(raft: Raft) -> list[m.Message]:
    return [message for ready in settle(raft) for message in ready.messages]


def lead(raft: Raft) -> None:
    raft.tick(raft.deadline())
    raft.step(m.VoteReply(member(2), 1, raft.term + 1, granted=True, pre=True), raft.now)
    settle(raft)
    raft.step(m.VoteReply(member(2), 1, raft.term, granted=True), raft.now)
    assert raft.role is Role.LEADER
    settle(raft)


def accept(raft: Raft, node: int, index: int) -> None:
    raft.step(m.AppendReply(member(node), 1, raft.term, accepted=True, index=index), raft.now)


# -- commit


def test_entries_of_older_terms_are_not_committed_by_counting() -> None:
    raft = make([1, 2])
    lead(raft)
    accept(raft, 2, 2)
    accept(raft, 3, 2)
    assert raft.log.commit == 0, "all have entry 2, but it is of an older term (Raft, figure 8)"
    accept(raft, 2, 3)
    assert raft.log.commit == 3
    assert [each.index for ready in settle(raft) for each in ready.committed] == [1, 2, 3]


def test_a_leader_counts_itself_only_after_persisting() -> None:
    raft = make([], voters=VOTERS[:1])
    raft.tick(0.0)
    ready = raft.ready()
    assert ready is not None and ready.hard_state == HardState(1, member(1)) and len(ready.entries) == 1
    assert raft.log.commit == 0 and not raft.is_established
    raft.advance(ready, 0.0)
    assert raft.log.commit == 1 and raft.is_established


def test_a_reply_from_a_replaced_disk_does_not_count() -> None:
    raft = make([1])
    lead(raft)
    stranger = Member(2, directory(99))
    raft.step(m.AppendReply(stranger, 1, raft.term, accepted=True, index=2), raft.now)
    assert raft.log.commit == 0
    accept(raft, 3, 2)
    assert raft.log.commit == 2


# -- votes


def ask(term: int, node: int = 2, *, last: tuple[int, int] = (9, 9), **options: bool) -> m.VoteRequest:
    return m.VoteRequest(member(node), 1, term, last_index=last[0], last_term=last[1], **options)


def replies(raft: Raft) -> list[tuple[int, bool]]:
    return [(each.target, each.granted) for each in sent(raft) if isinstance(each, m.VoteReply)]


def test_one_vote_per_term_and_it_is_persisted_before_it_is_sent() -> None:
    raft = make([1])
    raft.step(ask(5, 2), 10.0)
    ready = raft.ready()
    assert ready is not None and ready.hard_state == HardState(5, member(2))
    assert ready.messages == (m.VoteReply(member(1), 2, 5, granted=True),)
    raft.advance(ready, 10.0)
    raft.step(ask(5, 3), 10.0)
    raft.step(ask(5, 2), 10.0)
    assert replies(raft) == [(3, False), (2, True)]


@pytest.mark.parametrize(
    ("last", "granted"), [((2, 2), True), ((3, 2), True), ((1, 3), True), ((1, 2), False), ((9, 1), False)]
)
def test_only_a_complete_log_gets_a_vote(last: tuple[int, int], granted: bool) -> None:
    for pre in (True, False):
        raft = make([1, 2])
        raft.step(ask(5, last=last, pre=pre), 10.0)
        assert replies(raft) == [(2, granted)]


def test_a_pre_vote_changes_nothing() -> None:
    raft = make([1])
    raft.step(ask(7, pre=True), 10.0)
    assert [ready.hard_state for ready in settle(raft)] == [None]
    assert (raft.term, raft.vote) == (1, None)


def test_who_hears_a_leader_does_not_vote_unless_the_leader_hands_over() -> None:
    raft = make([1])
    raft.step(m.Append(member(2), 1, 1, 1, 1, (), 0), 10.0)
    settle(raft)
    raft.step(ask(2, 3), 10.5)
    assert raft.term == 1 and replies(raft) == []
    raft.step(ask(2, 3, handover=True), 10.5)
    assert raft.term == 2 and replies(raft) == [(3, True)]


def test_votes_of_strangers_do_not_count() -> None:
    raft = make([1])
    raft.tick(raft.deadline())
    raft.step(m.VoteReply(Member(2, directory(99)), 1, 2, granted=True, pre=True), raft.now)
    raft.step(m.VoteReply(member(7), 1, 2, granted=True, pre=True), raft.now)
    assert raft.role is Role.PRE_CANDIDATE


def test_a_leader_of_the_past_learns_of_it() -> None:
    raft = make([1], term=5)
    raft.step(m.Append(member(2), 1, 4, 0, 0, (), 0), 1.0)
    assert sent(raft) == [m.AppendReply(member(1), 2, 5, accepted=False, index=0)]


# -- limits


def test_messages_are_limited() -> None:
    raft = make([], entries_per_message_max=3, inflight_messages_max=2)
    lead(raft)
    accept(raft, 2, 1)
    settle(raft)
    raft.propose([b"x"] * 20, raft.now)
    to_two = [each for each in sent(raft) if isinstance(each, m.Append) and each.target == 2]
    assert [len(each.entries) for each in to_two] == [3, 3]
    accept(raft, 2, 4)
    more = [each for each in sent(raft) if isinstance(each, m.Append) and each.target == 2 and each.entries]
    assert [each.entries[0].index for each in more] == [8]


def test_an_entry_larger_than_a_message_is_sent_alone() -> None:
    raft = make([], bytes_per_message_max=100)
    lead(raft)
    accept(raft, 2, 1)
    settle(raft)
    raft.propose([b"y" * 500, b"z" * 10, b"z" * 10], raft.now)
    to_two = [each for each in sent(raft) if isinstance(each, m.Append) and each.target == 2]
    assert [len(each.entries) for each in to_two] == [1, 2]


def test_an_entry_that_fits_into_no_message_is_refused() -> None:
    """It would be sent to followers in vain for ever."""
    raft = make([], entry_bytes_max=100)
    lead(raft)
    with pytest.raises(TooLarge):
        raft.propose([b"x", b"x" * 101], raft.now)
    raft.propose([b"x" * 100], raft.now)


def test_too_much_at_once_is_refused() -> None:
    raft = make([], uncommitted_bytes_max=100)
    lead(raft)
    raft.propose([b"x" * 90], raft.now)
    with pytest.raises(Overloaded):
        raft.propose([b"x" * 20], raft.now)
    accept(raft, 2, raft.log.last_index)
    settle(raft)
    raft.propose([b"x" * 20], raft.now)


def test_a_follower_refuses_proposals() -> None:
    with pytest.raises(NotLeader):
        make([]).propose([b"x"], 0.0)


# -- arithmetic


@given(st.dictionaries(st.integers(1, 7), st.integers(0, 20), min_size=1))
def test_committed_index_is_what_a_majority_has(matches: dict[int, int]) -> None:
    voters = tuple(Voter(node) for node in matches)
    majorities = itertools.combinations(matches.values(), len(matches) // 2 + 1)
    assert committed_index(voters, matches) == max(min(group) for group in majorities)


@pytest.mark.parametrize(
    ("votes", "result"),
    [
        ({1: True}, Tally.OPEN),
        ({1: True, 2: True}, Tally.WON),
        ({1: True, 2: False}, Tally.OPEN),
        ({2: False, 3: False}, Tally.LOST),
        ({1: True, 8: True, 9: True}, Tally.OPEN),
    ],
)
def test_tally(votes: dict[int, bool], result: str) -> None:
    assert tally(VOTERS, votes) == result


def test_voter_changes() -> None:
    four = (*VOTERS, Voter(4, directory(4)))
    assert change_problem(VOTERS, four) is None
    assert change_problem(four, VOTERS) is None
    assert change_problem(VOTERS, ()) is not None
    assert change_problem(VOTERS, (*VOTERS, Voter(3, directory(5)))) is not None
    assert change_problem(VOTERS, (*VOTERS[:2], Voter(4, directory(4)))) is not None
    assert change_problem(VOTERS, (*VOTERS[:2], Voter(3, directory(33)))) is not None
    assert change_problem((Voter(1, ANY_DIRECTORY),), VOTERS[:1]) is None


@given(st.lists(st.integers(1, 4), max_size=8).map(sorted), st.lists(st.integers(1, 4), max_size=8).map(sorted))
def test_backtracking_never_skips_agreement(ours: list[int], theirs: list[int]) -> None:
    """Leader's and follower's hints never pass the last place where the logs may agree, and always get there."""
    follower, leader = make(ours).log, make(theirs).log
    common = 0
    while common < min(len(ours), len(theirs)) and ours[common] == theirs[common]:
        common += 1
    previous, steps = len(theirs), 0
    while follower.term_at(previous) != leader.term_at(previous):
        hint = follower.last_at_most(previous, leader.term_at(previous) or 0)
        resume = max(min(previous, leader.last_at_most(*hint)[0] + 1), 1) - 1
        assert common <= resume < previous or previous == 0
        previous, steps = resume, steps + 1
    assert steps <= len(set(ours) | set(theirs)) + 1


# -- a member that forgot


def refuse(raft: Raft, *, index: int, has: int) -> None:
    """As a member does whose log ends at `has`."""
    reply = m.AppendReply(
        member(2), 1, raft.term, accepted=False, index=index, hint_index=has, hint_term=raft.log.term_at(has) or 0
    )
    raft.step(reply, raft.now)


def appends_to(raft: Raft, node: int) -> list[m.Append]:
    return [each for each in sent(raft) if isinstance(each, m.Append) and each.target == node]


def test_a_member_that_lost_what_it_acknowledged_is_asked_at_heartbeats_only_and_then_sent_it_again() -> None:
    raft = make([1, 1, 1])
    lead(raft)
    accept(raft, 2, 4)
    raft.propose([b"y"], raft.now)
    append = appends_to(raft, 2)[-1]
    rounds: list[float] = []
    for _ in range(50):
        refuse(raft, index=append.previous_index, has=1)
        answers = appends_to(raft, 2)
        while not answers:
            raft.tick(raft.deadline())
            accept(raft, 3, raft.log.last_index)
            answers = appends_to(raft, 2)
        rounds.append(raft.now)
        append = answers[0]
        if append.previous_index <= 1:
            break
    assert append.previous_index == 1, "it is sent again what it lost"
    assert rounds[-1] - rounds[0] >= raft.config.heartbeat_s, "it was not believed at once, and not asked without pause"
    assert raft.losses == {2: 4}
    assert raft.log.commit == 5, "what was committed stays so"
    accept(raft, 2, 5)
    assert raft.peers[2].match == 5
