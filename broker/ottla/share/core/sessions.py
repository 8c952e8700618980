"""Share sessions: the partitions that a member fetches from this broker, so that requests carry only changes. Pure.

A session belongs to one member of one group. It ends with the connection that opened it, or when the member closes it
or opens another one. Then the member's acquired records are released.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.errors import Code, KafkaError

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "ShareSession", "ShareSessions", "TopicIdPartition"]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

TopicIdPartition = tuple[bytes, int]
"""(raw topic id, partition)"""


@dataclass(slots=True, eq=False)
class ShareSession:
    """`wanted` is in round-robin order: the partition served last is at the end."""

    group_id: str
    member_id: str
    wanted: dict[TopicIdPartition, None] = field(default_factory=dict)
    epoch: int = 1
    """The epoch that the next request must carry."""

    def change(self, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]) -> None:
        for key in added:
            self.wanted.setdefault(key)
        for key in forgotten:
            self.wanted.pop(key, None)

    def served(self, key: TopicIdPartition) -> None:
        """Move the partition to the end, so that all partitions get their turn."""
        if key in self.wanted:
            del self.wanted[key]
            self.wanted[key] = None


class ShareSessions:
    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has(self, session: ShareSession) -> bool:
        """False when it was closed or replaced."""
        return self._sessions.get((session.group_id, session.member_id)) is session

    def open(
        self, group_id: str, member_id: str, wanted: Iterable[TopicIdPartition], *, sessions_max: int
    ) -> ShareSession:
        """Replaces the member's previous session; its acquired records stay acquired and can be acknowledged.

        KafkaError: SHARE_SESSION_LIMIT_REACHED.
        """
        if (group_id, member_id) not in self._sessions and len(self._sessions) >= sessions_max:
            raise KafkaError(
                Code.share_session_limit_reached, f"this broker has {sessions_max} (group.share.max.share.sessions)"
            )
        session = self._sessions[group_id, member_id] = ShareSession(group_id, member_id)
        session.change(wanted, ())
        return session

    def proceed(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session that a request continues or closes. KafkaError if session and epoch do not match."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(Code.share_session_not_found)
        if epoch != FINAL_EPOCH:
            if epoch != session.epoch:
                raise KafkaError(Code.invalid_share_session_epoch, f"epoch {epoch} where {session.epoch} was expected")
            session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        return session

    def any_of(self, group_id: str) -> bool:
        return any(group == group_id for group, _ in self._sessions)

    def end(self, session: ShareSession) -> bool:
        """False if it has ended already."""
        if not self.has(session):
            return False
        del self._sessions[session.group_id, session.member_id]
        return True
