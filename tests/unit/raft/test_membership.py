"""Who may come and go, and steps between voter sets, each of which the core would accept."""

import itertools
import uuid
from collections.abc import Callable

import pytest
from ottla.errors import Code, KafkaError
from ottla.ids import uuid_text
from ottla.raft.core.membership import (
    ENTRIES_BEHIND_MAX,
    addition_waits_for,
    check_addition,
    check_removal,
    steps_to_add,
    steps_to_remove,
)
from ottla.raft.core.messages import ANY_DIRECTORY, Member, Voter
from ottla.raft.core.progress import Progress
from ottla.raft.core.quorum import change_problem

A, B, C = (Voter(node, uuid.UUID(int=node), f"host-{node}:1") for node in (1, 2, 3))


def accepted(*sets: tuple[Voter, ...]) -> bool:
    return all(change_problem(old, new) is None for old, new in itertools.pairwise(sets))


def test_a_new_voter_is_added() -> None:
    steps = steps_to_add((A, B), Member(3, C.directory), C.endpoint)
    assert steps == [(A, B, C)]
    assert accepted((A, B), *steps)


def test_a_voter_stays_what_it_is() -> None:
    assert steps_to_add((A, B), Member(2, B.directory), B.endpoint) == []


def test_a_voter_with_another_directory_is_removed_first() -> None:
    renewed = Member(2, uuid.UUID(int=22))
    steps = steps_to_add((A, B, C), renewed, B.endpoint)
    assert steps == [(A, C), (A, C, Voter(2, renewed.directory, B.endpoint))]
    assert accepted((A, B, C), *steps)
    assert not accepted((A, B, C), steps[-1])


def test_a_seed_voter_is_named() -> None:
    seed = Voter(2, ANY_DIRECTORY, B.endpoint)
    assert steps_to_add((A, seed), Member(2, B.directory), B.endpoint) == [(A, B)]


def test_a_voter_is_removed_once() -> None:
    assert steps_to_remove((A, B, C), 2) == [(A, C)]
    assert steps_to_remove((A, C), 2) == []


def refused(check: Callable[[], None]) -> tuple[Code, str | None]:
    with pytest.raises(KafkaError) as error:
        check()
    return error.value.code, error.value.message


def text(voter: Voter) -> str:
    return uuid_text(voter.directory)


class TestAddition:
    def test_a_stranger_may_come(self) -> None:
        check_addition((A, B), Member(3, C.directory))

    def test_a_voter_is_refused(self) -> None:
        problem = refused(lambda: check_addition((A, B), Member(2, B.directory)))
        assert problem == (Code.duplicate_voter, "Node 2 is a voter already.")

    def test_with_another_directory_too(self) -> None:
        code, message = refused(lambda: check_addition((A, B), Member(2, C.directory)))
        assert code is Code.duplicate_voter
        assert message == f"Node 2 is a voter already, with directory {text(B)}; remove that one first."

    def test_a_seed_voter_stands_for_any_directory(self) -> None:
        seed = Voter(2, ANY_DIRECTORY)
        assert refused(lambda: check_addition((A, seed), Member(2, C.directory)))[1] == "Node 2 is a voter already."

    def test_an_operator_may_renew_a_vote(self) -> None:
        check_addition((A, B), Member(2))


class TestWaiting:
    NOW = 100.0

    def waits_for(self, asked: Member, peer: Progress | None, *, commit: int = 5_000) -> str | None:
        return addition_waits_for(asked, peer, commit=commit, heard_since=self.NOW - 2)

    def follower(self, *, match: int = 5_000, heard_at: float = NOW) -> Progress:
        peer = Progress(Member(3, C.directory), next_index=1, inflight_max=1)
        peer.match, peer.heard_at = match, heard_at
        return peer

    @pytest.mark.parametrize("asked", [Member(3, C.directory), Member(3)])
    def test_for_nothing(self, asked: Member) -> None:
        assert self.waits_for(asked, self.follower()) is None
        assert self.waits_for(asked, self.follower(match=5_000 - ENTRIES_BEHIND_MAX)) is None

    def test_for_a_node_that_follows(self) -> None:
        problem = "node 3 does not follow the metadata log"
        assert self.waits_for(Member(3, C.directory), None) == problem
        assert self.waits_for(Member(3, C.directory), self.follower(heard_at=self.NOW - 3)) == problem

    def test_for_the_directory(self) -> None:
        problem = f"node 3 follows the metadata log with directory {text(C)}, not {text(A)}"
        assert self.waits_for(Member(3, A.directory), self.follower()) == problem

    def test_for_the_log(self) -> None:
        behind = self.follower(match=5_000 - ENTRIES_BEHIND_MAX - 1)
        assert self.waits_for(Member(3, C.directory), behind) == "node 3 has not caught up with the metadata log"


class TestRemoval:
    def test_a_voter_may_go(self) -> None:
        check_removal((A, B), Member(2, B.directory))
        check_removal((A, Voter(2, ANY_DIRECTORY)), Member(2, B.directory))

    @pytest.mark.parametrize("stranger", [Member(2, C.directory), Member(3, C.directory)])
    def test_who_does_not_vote_is_not_found(self, stranger: Member) -> None:
        code, message = refused(lambda: check_removal((A, B), stranger))
        assert code is Code.voter_not_found
        assert message == (
            f"Node {stranger.id} with directory {text(C)} is not a voter; the voters are 1 ({text(A)}), 2 ({text(B)})."
        )

    @pytest.mark.parametrize("asked", [Member(1, A.directory), Member(1)])
    def test_the_last_voter_stays(self, asked: Member) -> None:
        problem = (Code.voter_not_found, "Node 1 is the only voter; add another one first.")
        assert refused(lambda: check_removal((A,), asked)) == problem

    def test_an_operator_may_ask_twice(self) -> None:
        check_removal((A, B), Member(2))
        check_removal((A, B), Member(3))
