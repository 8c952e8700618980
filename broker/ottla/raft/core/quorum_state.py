"""What DescribeQuorum shows: the members as one node sees them. Pure."""

import math
import uuid

import msgspec

from ottla.raft.core.messages import Member, Voters
from ottla.raft.core.progress import Progress
from ottla.raft.core.quorum import is_voter
from ottla.raft.core.raft import Raft

__all__ = ["QuorumState", "ReplicaState", "describe"]


class ReplicaState(msgspec.Struct, frozen=True):
    """-1: not known."""

    id: int
    directory: uuid.UUID
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumState(msgspec.Struct, frozen=True):
    """Offsets are Kafka's: one past the last index."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaState, ...]
    observers: tuple[ReplicaState, ...]
    voter_endpoints: Voters


def describe(raft: Raft, *, now: float, wall_ms: int) -> QuorumState:
    """`now` and `wall_ms` are the same moment, on the monotonic clock and on the wall."""
    peers = {peer.member: _replica(peer, now, wall_ms) for peer in raft.peers.values()}
    known = {raft.member: _own_state(raft, wall_ms), **peers}
    voters = tuple(state for member, state in known.items() if is_voter(raft.log.voters, member))
    observers = tuple(state for member, state in known.items() if not is_voter(raft.log.voters, member))
    leader = -1 if raft.leader is None else raft.leader
    return QuorumState(leader, raft.term, raft.log.commit + 1, voters, observers, raft.log.voters)


def _own_state(raft: Raft, wall_ms: int) -> ReplicaState:
    seen_ms = wall_ms if raft.leadership is not None else -1
    return ReplicaState(raft.member.id, raft.member.directory, raft.log.stable + 1, seen_ms, seen_ms)


def _replica(peer: Progress, now: float, wall_ms: int) -> ReplicaState:
    def wall_ms_of(moment: float) -> int:
        return -1 if moment == -math.inf else wall_ms - round((now - moment) * 1000)

    member: Member = peer.member
    fetched, caught_up = wall_ms_of(peer.heard_at), wall_ms_of(peer.caught_up_at)
    return ReplicaState(member.id, member.directory, peer.match + 1, fetched, caught_up)
