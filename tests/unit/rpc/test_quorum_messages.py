"""Every message of the quorum survives the wire."""

import uuid

import pytest
from ottla.pb import quorum_pb2 as pb
from ottla.raft.core import messages as m
from ottla.raft.core.messages import Entry, EntryKind, Member, Message, Snapshot, Voter
from ottla.rpc.quorum_messages import SNAPSHOT_PART_BYTES, decode, encode, snapshot_frames, snapshot_of

SOURCE = Member(1, uuid.UUID(int=7))
MESSAGES = [
    m.VoteRequest(SOURCE, 2, 5, last_index=9, last_term=4, pre=True, handover=True),
    m.VoteReply(SOURCE, 2, 5, granted=True, pre=True),
    m.Append(SOURCE, 2, 5, 8, 4, (Entry(9, 5, EntryKind.DATA, b"x"), Entry(10, 5, EntryKind.VOTERS, b"")), 9),
    m.AppendReply(SOURCE, 2, 5, accepted=False, index=8, hint_index=6, hint_term=3),
    m.Join(SOURCE, 2, 5, last_index=3),
    m.LeaderHint(SOURCE, 2, 5, leader=4),
    m.TimeoutNow(SOURCE, 2, 5),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_there_and_back(message: Message) -> None:
    sent = encode(message, lambda node: f"host-{node}:1").SerializeToString()
    assert decode(pb.QuorumMessage.FromString(sent), source=SOURCE, target=2) == message


def test_all_kinds_are_tried() -> None:
    kinds = set(m.Message.__subclasses__()) - {m.InstallSnapshot}
    assert {type(message) for message in MESSAGES} == kinds


def test_a_hint_says_where_the_leader_is() -> None:
    made = encode(m.LeaderHint(SOURCE, 2, 5, leader=4), lambda node: f"host-{node}:1")
    assert made.leader_hint.endpoint == "host-4:1"


def test_a_kind_of_a_newer_version_is_passed_over() -> None:
    assert decode(pb.QuorumMessage(term=3), source=SOURCE, target=2) is None


@pytest.mark.parametrize("size", [0, 1, SNAPSHOT_PART_BYTES, 2 * SNAPSHOT_PART_BYTES + 5])
def test_snapshots_go_in_parts(size: int) -> None:
    voters = (Voter(1, uuid.UUID(int=1), "a:1"), Voter(2))
    message = m.InstallSnapshot(SOURCE, 2, 5, Snapshot(100, 4, voters, bytes(size)))
    head, *parts = snapshot_frames(message)
    assert all(len(part.data) <= SNAPSHOT_PART_BYTES for part in parts)
    assert snapshot_of(head.head, b"".join(part.data for part in parts), source=SOURCE, target=2) == message
