"""A member of a classic group, the requests it sends and the answers it gets. Pure."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ottla.coordination.core.effects import Effects, Reply
from ottla.errors import Code

__all__ = ["NEVER", "REASON_CHARACTERS_MAX", "Join", "Joined", "Leave", "Left", "Member", "Sync", "Synced"]

NEVER = float("inf")
REASON_CHARACTERS_MAX = 255  # a member's reason to join or leave is cut to this length, as in Kafka's clients (KIP-800)


class Join(NamedTuple):
    """A JoinGroup request. `needs_known_id`: from v4 on (KIP-394). `may_skip_assignment`: from v9 on (KIP-814)."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    needs_known_id: bool = True
    may_skip_assignment: bool = True
    reason: str | None = None


class Joined(NamedTuple):
    """`members`: (member id, instance id, metadata) of all members; only the leader gets them."""

    code: Code = Code.none
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    members: Sequence[tuple[str, str | None, bytes]] = ()


class Sync(NamedTuple):
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[tuple[str, bytes]] = ()


class Synced(NamedTuple):
    code: Code = Code.none
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class Leave(NamedTuple):
    """One member of a LeaveGroup request. Without a member id it names the instance: an administrator removes it."""

    member_id: str
    instance_id: str | None = None
    reason: str | None = None


class Left(NamedTuple):
    code: Code = Code.none
    members: Sequence[tuple[Leave, Code]] = ()


class Member:
    """At most one JoinGroup and one SyncGroup wait for their answers; both requests are opaque here.

    `is_new`: the member waits for its first answer, so it cannot send heartbeats. `deadline`: when its session expires.
    """

    __slots__ = (
        "_waiting_join",
        "_waiting_sync",
        "assignment",
        "client_host",
        "client_id",
        "deadline",
        "instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: tuple[tuple[str, bytes], ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self._waiting_join: Any = None
        self._waiting_sync: Any = None
        self.is_new = False
        self.deadline = NEVER

    @classmethod
    def new(cls, member_id: str, join: Join, to: Any, *, until: float) -> "Member":
        """`until`: when the member is removed if it has not got its first answer by then."""
        member = cls(
            member_id,
            instance_id=join.instance_id,
            client_id=join.client_id,
            client_host=join.client_host,
            session_timeout_ms=join.session_timeout_ms,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            protocols=join.protocols,
        )
        member.is_new = True
        member.deadline = until
        member._waiting_join = to
        return member

    def successor(self, member_id: str, *, protocols: tuple[tuple[str, bytes], ...]) -> "Member":
        """The same static member under another id."""
        return Member(
            member_id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            protocols=protocols,
            assignment=self.assignment,
        )

    @property
    def kept_bytes(self) -> int:
        return sum(len(name) + len(metadata) for name, metadata in self.protocols) + len(self.assignment)

    def update(self, join: Join, to: Any) -> None:
        self.protocols = join.protocols
        self.session_timeout_ms = join.session_timeout_ms
        self.rebalance_timeout_ms = join.rebalance_timeout_ms
        self._waiting_join = to

    # requests that wait

    @property
    def waits_to_join(self) -> bool:
        return self._waiting_join is not None

    @property
    def waits_for_assignment(self) -> bool:
        return self._waiting_sync is not None

    def wait_for_assignment(self, to: Any) -> None:
        self._waiting_sync = to

    def answer_join(self, answer: Joined) -> Effects:
        """No effect if no JoinGroup waits."""
        to, self._waiting_join = self._waiting_join, None
        return [] if to is None else [Reply(to, answer)]

    def answer_sync(self, answer: Synced) -> Effects:
        """No effect if no SyncGroup waits."""
        to, self._waiting_sync = self._waiting_sync, None
        return [] if to is None else [Reply(to, answer)]

    # its session

    def begin_generation(self) -> None:
        """The member gets its answer, so it is not new any more."""
        self.is_new = False

    def hold_session(self) -> None:
        """The session cannot expire before the member is answered."""
        self.deadline = NEVER

    def assign(self, assignment: bytes) -> None:
        self.assignment = assignment

    def renew_session(self, now: float) -> float:
        """Restart the session. Returns when it expires."""
        self.deadline = now + self.session_timeout_ms / 1000
        return self.deadline

    @property
    def is_session_held(self) -> bool:
        """A member that waits for an answer cannot send heartbeats, so its session does not expire, unless it is
        new."""
        return not self.is_new and (self._waiting_join is not None or self._waiting_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")
