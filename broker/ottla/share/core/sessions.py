"""Share sessions: what a member fetches from this broker, so that its requests carry changes only. Pure.

A session belongs to one member of one group and lives as long as the connection that opened it, unless the member
closes it or opens another. What the member holds is released when its session ends.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ottla.errors import Code, KafkaError

__all__ = ["FINAL_EPOCH", "INITIAL_EPOCH", "ShareSession", "ShareSessions", "Wanted"]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

Wanted = tuple[bytes, int]
"""(raw topic id, partition)"""


@dataclass(slots=True, eq=False)
class ShareSession:
    """`wanted` is in the order of turns: who was served last comes last."""

    group_id: str
    member_id: str
    wanted: dict[Wanted, None] = field(default_factory=dict)
    epoch: int = 1
    """What the next request must carry."""

    def change(self, added: Iterable[Wanted], forgotten: Iterable[Wanted]) -> None:
        for key in added:
            self.wanted.setdefault(key)
        for key in forgotten:
            self.wanted.pop(key, None)

    def served(self, key: Wanted) -> None:
        """To the end of the line, so that all partitions get their turn."""
        if key in self.wanted:
            del self.wanted[key]
            self.wanted[key] = None


class ShareSessions:
    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has(self, session: ShareSession) -> bool:
        """False when it was closed, or another one took its place."""
        return self._sessions.get((session.group_id, session.member_id)) is session

    def open(self, group_id: str, member_id: str, wanted: Iterable[Wanted], *, sessions_max: int) -> ShareSession:
        """In place of the member's last one, if there is any; what it holds it keeps, and may still acknowledge.

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
        """The session that a request continues, or is the last of. KafkaError when it does not know of it."""
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
        """False when it has ended already."""
        if not self.has(session):
            return False
        del self._sessions[session.group_id, session.member_id]
        return True
