"""When a leader's process ends its followers need not wait for its silence."""

import uuid
from random import Random

import pytest
from ottla.raft.core import messages as m
from ottla.raft.core.elections import Role
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import HardState, Member, Snapshot, Voter
from ottla.raft.core.raft import Raft, RaftConfig

VOTERS = tuple(Voter(node, uuid.UUID(int=node)) for node in (1, 2, 3))
LEADER = Member(2, uuid.UUID(int=2))


def follower(node: int) -> Raft:
    """Has just heard of leader 2."""
    raft = Raft(
        RaftConfig(member=Member(node, uuid.UUID(int=node)), election_timeout_s=1.0, leader_timeout_s=5.0),
        hard_state=HardState(term=4),
        log=RaftLog(snapshot=Snapshot(0, 0, VOTERS, b""), offset=0, offset_term=0, entries=[]),
        random=Random(1),
        now=10.0,
    )
    raft.step(m.Append(LEADER, node, 4, 0, 0, (), 0), 10.0)
    return raft


def test_the_silence_of_a_leader_is_borne_for_its_own_time() -> None:
    assert follower(1).deadline() >= 15.0


def test_followers_stand_soon_and_one_after_the_other() -> None:
    first, second = follower(1), follower(3)
    for raft in (first, second):
        raft.leader_gone(2, 11.0)
    heartbeat = first.config.heartbeat_s
    assert 11.0 < first.deadline() < second.deadline() < 11.0 + 2 * heartbeat
    assert second.deadline() - first.deadline() > heartbeat / 4


@pytest.mark.parametrize("gone", [1, 3, 9])
def test_the_end_of_another_node_changes_nothing(gone: int) -> None:
    raft = follower(1)
    before = raft.deadline()
    raft.leader_gone(gone, 11.0)
    assert (raft.leader, raft.deadline()) == (2, before)


def test_who_has_noticed_gives_its_vote() -> None:
    raft = follower(3)
    ask = m.VoteRequest(Member(1, uuid.UUID(int=1)), 3, 5, last_index=0, last_term=0, pre=True)
    raft.step(ask, 11.0)
    assert not any(isinstance(message, m.VoteReply) for message in raft.outbox)
    raft.leader_gone(2, 11.0)
    raft.step(ask, 11.0)
    (reply,) = [message for message in raft.outbox if isinstance(message, m.VoteReply)]
    assert reply.granted


def test_a_leader_that_lives_after_all_is_followed_again() -> None:
    raft = follower(1)
    raft.leader_gone(2, 11.0)
    raft.step(m.Append(LEADER, 1, 4, 0, 0, (), 0), 11.01)
    assert (raft.leader, raft.role) == (2, Role.FOLLOWER)
    assert raft.deadline() >= 16.0
