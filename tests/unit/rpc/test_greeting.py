"""Who is let in, and what the others are answered."""

import uuid

import msgspec
import pytest
from ottla.raft.core.messages import Member
from ottla.rpc.greeting import Identity, common_version, hello_to, member_of, refusal

OWN = Identity(
    cluster_id="ours",
    member=Member(1, uuid.UUID(int=1)),
    incarnation=uuid.UUID(int=11),
    endpoint="a:1",
    versions=(2, 4),
)
OTHER = msgspec.structs.replace(
    OWN, member=Member(2, uuid.UUID(int=2)), incarnation=uuid.UUID(int=22), endpoint="b:2", versions=(3, 7)
)


def test_a_peer_is_welcome() -> None:
    hello = hello_to(1, OTHER)
    assert refusal(hello, OWN, {}) is None
    assert member_of(hello) == OTHER.member


def test_a_second_stream_of_the_same_process_is_welcome() -> None:
    assert refusal(hello_to(1, OTHER), OWN, {2: OTHER.incarnation.bytes}) is None


@pytest.mark.parametrize(
    ("changed", "target", "connected", "words"),
    [
        ({"cluster_id": "theirs"}, 1, {}, ["belongs to cluster theirs", "cluster ours"]),
        ({"member": Member(1, uuid.UUID(int=2))}, 1, {}, ["node id 1 is taken", "b:2", "a:1"]),
        ({}, 1, {2: uuid.UUID(int=99).bytes}, ["node id 2 is taken by a node that is connected"]),
        ({}, 5, {}, ["expects node 5, but a:1 is node 1"]),
        ({"versions": (5, 9)}, 1, {}, ["speaks protocol versions 5 to 9", "2 to 4"]),
    ],
    ids=["cluster", "own id", "duplicate", "wrong address", "version"],
)
def test_strangers_are_told_why(
    changed: dict[str, object], target: int, connected: dict[int, bytes], words: list[str]
) -> None:
    problem = refusal(hello_to(target, msgspec.structs.replace(OTHER, **changed)), OWN, connected)
    assert problem is not None
    assert all(word in problem for word in words), problem


def test_a_malformed_hello_is_refused() -> None:
    hello = hello_to(1, OTHER)
    hello.directory = b"short"
    assert "malformed" in (refusal(hello, OWN, {}) or "")


@pytest.mark.parametrize(
    ("own", "other", "common"), [((1, 1), (1, 1), 1), ((1, 3), (2, 5), 3), ((2, 4), (1, 2), 2), ((1, 2), (3, 4), None)]
)
def test_the_highest_common_version_is_used(own: tuple[int, int], other: tuple[int, int], common: int | None) -> None:
    assert common_version(own, other) == common
