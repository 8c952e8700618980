"""The quorum's messages as protobuf and back. Pure.

Source and target are not in a message: the stream's hello names both.
"""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from ottla.pb import quorum_pb2 as pb
from ottla.raft.core import messages as m
from ottla.raft.core.messages import Entry, EntryKind, Member, Message, Snapshot, Voter, Voters

__all__ = ["SNAPSHOT_PART_BYTES", "decode", "encode", "snapshot_frames", "snapshot_head", "snapshot_of"]

SNAPSHOT_PART_BYTES = 1 << 20
AddressOf = Callable[[int], str]


def encode(message: Message, address_of: AddressOf) -> pb.QuorumMessage:
    """`address_of` gives the gRPC address of a node, or an empty text."""
    made = pb.QuorumMessage(term=message.term)
    match message:
        case m.VoteRequest():
            made.vote_request.CopyFrom(_same_fields(pb.VoteRequest, message))
        case m.VoteReply():
            made.vote_reply.CopyFrom(_same_fields(pb.VoteReply, message))
        case m.Append():
            made.append.CopyFrom(_append(message))
        case m.AppendReply():
            made.append_reply.CopyFrom(_same_fields(pb.AppendReply, message))
        case m.Join():
            made.join.CopyFrom(_same_fields(pb.Join, message))
        case m.LeaderHint():
            made.leader_hint.CopyFrom(pb.LeaderHint(leader=message.leader, endpoint=address_of(message.leader)))
        case m.TimeoutNow():
            made.timeout_now.SetInParent()
        case _:
            raise AssertionError(f"{type(message).__name__} does not travel in a QuorumMessage")
    return made


def _same_fields(made: type[Any], message: Message) -> Any:
    return made(**{field.name: getattr(message, field.name) for field in made.DESCRIPTOR.fields})


def _append(message: m.Append) -> pb.Append:
    return pb.Append(
        previous_index=message.previous_index,
        previous_term=message.previous_term,
        entries=[pb.Entry(index=e.index, term=e.term, kind=e.kind, data=e.data) for e in message.entries],
        commit=message.commit,
    )


def decode(received: pb.QuorumMessage, *, source: Member, target: int) -> Message | None:
    """None for a kind that this version does not know. ValueError for an entry of an unknown kind."""
    kind = received.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "append":
        return _decode_append(received, source, target)
    if kind == "leader_hint":
        return m.LeaderHint(source, target, received.term, leader=received.leader_hint.leader)
    body = getattr(received, kind)
    fields = {field.name: getattr(body, field.name) for field in body.DESCRIPTOR.fields}
    return _KINDS[kind](source, target, received.term, **fields)


_KINDS: dict[str, Callable[..., Message]] = {
    "vote_request": m.VoteRequest,
    "vote_reply": m.VoteReply,
    "append_reply": m.AppendReply,
    "join": m.Join,
    "timeout_now": m.TimeoutNow,
}


def _decode_append(received: pb.QuorumMessage, source: Member, target: int) -> m.Append:
    body = received.append
    entries = tuple(Entry(e.index, e.term, EntryKind(e.kind), e.data) for e in body.entries)
    return m.Append(source, target, received.term, body.previous_index, body.previous_term, entries, body.commit)


# -- snapshots


def snapshot_head(message: m.InstallSnapshot) -> pb.SnapshotHead:
    snapshot = message.snapshot
    return pb.SnapshotHead(
        message_term=message.term,
        index=snapshot.index,
        term=snapshot.term,
        voters=[pb.SnapshotVoter(id=v.id, directory=v.directory.bytes, endpoint=v.endpoint) for v in snapshot.voters],
        size=len(snapshot.data),
    )


def snapshot_frames(message: m.InstallSnapshot) -> Iterator[pb.SnapshotFrame]:
    yield pb.SnapshotFrame(head=snapshot_head(message))
    data = message.snapshot.data
    for begin in range(0, len(data), SNAPSHOT_PART_BYTES):
        yield pb.SnapshotFrame(data=data[begin : begin + SNAPSHOT_PART_BYTES])


def snapshot_of(head: pb.SnapshotHead, data: bytes, *, source: Member, target: int) -> m.InstallSnapshot:
    voters: Voters = tuple(Voter(v.id, uuid.UUID(bytes=v.directory), v.endpoint) for v in head.voters)
    snapshot = Snapshot(head.index, head.term, voters, data)
    return m.InstallSnapshot(source, target, head.message_term, snapshot)
