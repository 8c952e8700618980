"""Times and limits of one member. Pure values."""

import msgspec

from ottla.raft.core.messages import Member

__all__ = ["RaftConfig"]


class RaftConfig(msgspec.Struct, frozen=True, kw_only=True):
    member: Member
    # The election timeout, before its random part of up to the same length.
    election_timeout_s: float = 1.0
    # The same wait while there is a leader, which also steps down when a majority is silent for this long.
    # None: the election timeout.
    leader_timeout_s: float | None = None
    heartbeat_s: float = 0.2
    snapshot_retry_s: float = 10.0
    observer_timeout_s: float = 10.0
    entries_per_message_max: int = 1_000
    bytes_per_message_max: int = 1 << 20
    inflight_messages_max: int = 16
    # Four hundred thousand partition changes; below the limit of a message between nodes.
    entry_bytes_max: int = 15 << 20
    uncommitted_bytes_max: int = 64 << 20
    committed_entries_per_ready_max: int = 100_000
    observers_max: int = 1_000
    # Entries kept before a snapshot, so that a follower that is slightly behind does not need the snapshot.
    entries_kept: int = 1_000

    @property
    def silence_s(self) -> float:
        """How long a leader may be silent, or its followers."""
        return self.election_timeout_s if self.leader_timeout_s is None else self.leader_timeout_s
