"""Steps between voter sets, each of which the core would accept."""

import itertools
import uuid

from ottla.raft.messages import ANY_DIRECTORY, Member, Voter
from ottla.raft.quorum import change_problem
from ottla.raft.voting import steps_to_add, steps_to_remove

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
