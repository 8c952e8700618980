"""Share sessions: the partitions that a member fetches from this broker, so that requests carry only changes. Pure.

A session belongs to one member of one group. It ends with the connection that opened it, or when the member closes it
or opens another one. Then the member's acquired records are released. Its partitions are limited, also those of topics
that do not exist: a member beyond the limit is told so, and begins a new session.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from ottla.errors import Code, KafkaError
from ottla.ids import uuid_from_text
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "PARTITIONS_MAX",
    "SESSION_PARTITIONS_MAX",
    "ShareSession",
    "ShareSessions",
    "TopicIdPartition",
]

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
HEX_CHARACTERS = 36  # of a uuid that is not in base64
SESSION_PARTITIONS_MAX = 10_000  # that one member fetches from one broker
PARTITIONS_MAX = 200_000  # of all sessions, as of fetch sessions: some 50 MB

TopicIdPartition = tuple[bytes, int]
"""(raw topic id, partition)"""


def _nothing() -> None:
    pass


@dataclass(slots=True, eq=False)
class ShareSession:
    """`wanted` is in round-robin order: the partition served last is at the end."""

    group_id: str
    member_id: str
    wanted: dict[TopicIdPartition, None] = field(default_factory=dict)
    epoch: int = 1
    """The epoch that the next request must carry."""
    holding: set[TopicIdPartition] = field(default_factory=set)
    """Where the member has acquired records, in this session or one that it replaced."""
    on_end: Callable[[], None] = _nothing
    """Called once, when it is closed or replaced."""

    def served(self, key: TopicIdPartition) -> None:
        """Move the partition to the end, so that all partitions get their turn."""
        if key in self.wanted:
            del self.wanted[key]
            self.wanted[key] = None


class ShareSessions:
    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._groups = Counter[str]()  # sessions by group
        self._partitions = 0  # of all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def has(self, session: ShareSession) -> bool:
        """False when it was closed or replaced."""
        return self._sessions.get((session.group_id, session.member_id)) is session

    def open(
        self, group_id: str, member_id: str, wanted: Iterable[TopicIdPartition], *, sessions_max: int
    ) -> ShareSession:
        """Replaces the member's previous session; its acquired records stay acquired and can be acknowledged.

        KafkaError: SHARE_SESSION_LIMIT_REACHED, INVALID_GROUP_ID, INVALID_REQUEST for a member id that is no uuid.
        """
        _check_names(group_id, member_id)
        before = self._sessions.get((group_id, member_id))
        if before is None and len(self._sessions) >= sessions_max:
            raise KafkaError(
                Code.share_session_limit_reached, f"this broker has {sessions_max} (group.share.max.share.sessions)"
            )
        session = ShareSession(group_id, member_id, dict.fromkeys(wanted))
        self._check_size(len(session.wanted), 0 if before is None else len(before.wanted))
        if before is not None:
            session.holding = before.holding
            self.end(before)
        self._sessions[group_id, member_id] = session
        self._groups[group_id] += 1
        self._partitions += len(session.wanted)
        return session

    def change(
        self, session: ShareSession, added: Iterable[TopicIdPartition], forgotten: Iterable[TopicIdPartition]
    ) -> None:
        """KafkaError without any change: SHARE_SESSION_LIMIT_REACHED."""
        gone = session.wanted.keys() & set(forgotten)
        new = [key for key in added if key not in session.wanted]
        size, size_before = len(session.wanted) + len(new) - len(gone), len(session.wanted)
        self._check_size(size, size_before)
        session.wanted.update(dict.fromkeys(new))
        for key in gone:
            del session.wanted[key]
        self._partitions += len(session.wanted) - size_before

    def _check_size(self, size: int, size_before: int) -> None:
        """A session that shrinks may always do so."""
        if size <= size_before:
            return
        if size > SESSION_PARTITIONS_MAX:
            text = f"a share session has at most {SESSION_PARTITIONS_MAX} partitions"
            raise KafkaError(Code.share_session_limit_reached, text)
        if self._partitions + size - size_before > PARTITIONS_MAX:
            text = f"the share sessions of this broker have at most {PARTITIONS_MAX} partitions together"
            raise KafkaError(Code.share_session_limit_reached, text)

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
        return group_id in self._groups

    def end(self, session: ShareSession) -> bool:
        """False if it has ended already."""
        if not self.has(session):
            return False
        del self._sessions[session.group_id, session.member_id]
        self._partitions -= len(session.wanted)
        self._groups[session.group_id] -= 1
        if not self._groups[session.group_id]:
            del self._groups[session.group_id]
        on_end, session.on_end = session.on_end, _nothing
        on_end()
        return True


def _check_names(group_id: str, member_id: str) -> None:
    """Both are kept as long as the session. Members make their ids themselves, as uuids, and Kafka parses them."""
    if is_too_long(group_id):
        raise KafkaError(Code.invalid_group_id, f"a group id has at most {TEXT_BYTES_MAX} bytes")
    try:
        UUID(member_id) if len(member_id) == HEX_CHARACTERS else uuid_from_text(member_id[: HEX_CHARACTERS - 1])
    except ValueError:
        raise KafkaError(Code.invalid_request, "a member id is a uuid, as 22 characters of URL-safe base64") from None
