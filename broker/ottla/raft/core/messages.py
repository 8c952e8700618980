"""Entries and messages of the quorum. Pure values.

A member is a node id together with the id of its metadata directory (KIP-853). A node that lost its disk returns as
another member, which has acknowledged nothing and is an observer until it is added again.
"""

import uuid
from enum import IntEnum

import msgspec

__all__ = [
    "ANY_DIRECTORY",
    "Append",
    "AppendReply",
    "Entry",
    "EntryKind",
    "HardState",
    "InstallSnapshot",
    "Join",
    "LeaderHint",
    "Member",
    "Message",
    "Snapshot",
    "TimeoutNow",
    "VoteReply",
    "VoteRequest",
    "Voter",
    "Voters",
]

# The directory of a seed voter while it is unknown: it matches any directory of the node.
ANY_DIRECTORY = uuid.UUID(int=0)


class Member(msgspec.Struct, frozen=True, gc=False):
    id: int
    directory: uuid.UUID = ANY_DIRECTORY


class Voter(msgspec.Struct, frozen=True, gc=False):
    id: int
    directory: uuid.UUID = ANY_DIRECTORY
    # host:port of its gRPC listener.
    endpoint: str = ""

    def is_member(self, member: Member) -> bool:
        return self.id == member.id and self.directory in (ANY_DIRECTORY, member.directory)


Voters = tuple[Voter, ...]


class EntryKind(IntEnum):
    DATA = 0
    # A new leader's first entry: entries of earlier terms are committed together with it.
    LEADER = 1
    # The whole new voter set; it applies as soon as it is in a node's log.
    VOTERS = 2


class Entry(msgspec.Struct, frozen=True, gc=False):
    index: int
    term: int
    kind: EntryKind
    data: bytes

    def voters(self) -> Voters:
        return msgspec.json.decode(self.data, type=Voters)


def encode_voters(voters: Voters) -> bytes:
    return msgspec.json.encode(voters)


class HardState(msgspec.Struct, frozen=True):
    """Must survive a restart. `seed` are the voters of an empty log."""

    term: int = 0
    vote: Member | None = None
    seed: Voters = ()


class Snapshot(msgspec.Struct, frozen=True):
    """Everything up to and including entry `index`."""

    index: int
    term: int
    voters: Voters
    data: bytes


class Message(msgspec.Struct, frozen=True):
    source: Member
    target: int
    term: int


class VoteRequest(Message, frozen=True):
    """`pre`: only asks whether a real request would win. `handover`: the leader itself asked for this election."""

    last_index: int
    last_term: int
    pre: bool = False
    handover: bool = False


class VoteReply(Message, frozen=True):
    granted: bool
    pre: bool = False


class Append(Message, frozen=True):
    """Without entries: a heartbeat."""

    previous_index: int
    previous_term: int
    entries: tuple[Entry, ...]
    commit: int


class AppendReply(Message, frozen=True):
    """Accepted: the logs agree up to `index`. Refused: they disagree at `index`; the hint is where they might agree."""

    accepted: bool
    index: int
    hint_index: int = 0
    hint_term: int = 0


class InstallSnapshot(Message, frozen=True):
    snapshot: Snapshot


class Join(Message, frozen=True):
    """An observer asks the leader to send it the log."""

    last_index: int


class LeaderHint(Message, frozen=True):
    leader: int


class TimeoutNow(Message, frozen=True):
    """Leadership transfer: the receiver stands for election at once."""
