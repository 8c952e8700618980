"""Incremental fetch sessions (KIP-227): the broker remembers what a consumer fetches; requests carry changes only.

No I/O; the clock is an argument. A session belongs to one consumer connection's stream of fetches and expires by being
pushed out: the cache holds `sessions_max` with `PARTITIONS_MAX` partitions in all, and a session idle for
`EVICTION_SECONDS` gives way to a new one. A consumer that gets none names all its partitions in every request.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from random import Random

from ottla.errors import Code, KafkaError

__all__ = ["FetchSessions", "Session", "Wanted"]

EVICTION_SECONDS = 120.0
PARTITIONS_MAX = 200_000  # some 50 MB
NAME_CHARACTERS_MAX = 249  # of a topic; no session is kept for what cannot exist
SESSIONLESS = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1

Key = tuple[str | bytes, int]
"""(topic name or raw topic id, partition)."""


@dataclass(slots=True, eq=False)
class Wanted:
    """A consumer's request for one partition, and the last answer about it."""

    topic: str | bytes
    index: int
    offset: int
    size_bytes_max: int
    leader_epoch: int = -1
    last_fetched_epoch: int = -1
    sent_watermark: int = -1
    sent_start: int = -1
    sent_error: bool = False

    def update(self, newer: "Wanted") -> None:
        self.offset = newer.offset
        self.size_bytes_max = newer.size_bytes_max
        self.leader_epoch = newer.leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch


@dataclass(slots=True)
class Session:
    id: int
    uses_ids: bool
    epoch: int = 1
    """The epoch that the next request must carry."""
    wanted: dict[Key, Wanted] = field(default_factory=dict)
    used_at: float = 0.0
    incremental: bool = False
    """True after the first, full answer: from then on only changes are sent."""

    def change(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        for key in forgotten:
            self.wanted.pop(key, None)
        for newer in wanted:
            known = self.wanted.setdefault((newer.topic, newer.index), newer)
            if known is not newer:
                known.update(newer)


class FetchSessions:
    def __init__(self, *, sessions_max: int, random: Random) -> None:
        self._sessions_max = sessions_max
        self._random = random
        self._sessions: dict[int, Session] = {}
        self._partitions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self,
        *,
        session_id: int,
        epoch: int,
        wanted: Collection[Wanted],
        forgotten: Iterable[Key],
        uses_ids: bool,
        now: float,
    ) -> Session:
        """The session that this request continues or starts, or none (id 0). KafkaError: the session errors of
        KIP-227."""
        may_keep = all(len(one.topic) <= NAME_CHARACTERS_MAX for one in wanted)
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._forget(session_id)
            wants_one = epoch == INITIAL_EPOCH and may_keep
            return self._new(self._free_id(now) if wants_one else SESSIONLESS, wanted, uses_ids, now)
        session = self._known(session_id, epoch, uses_ids)
        if not may_keep:
            self._forget(session_id)
            raise KafkaError(Code.fetch_session_id_not_found)  # the client names all its partitions in every request
        self._partitions -= len(session.wanted)
        session.change(wanted, forgotten)
        self._partitions += len(session.wanted)
        if self._partitions > PARTITIONS_MAX:
            self._forget(session_id)
            raise KafkaError(Code.fetch_session_id_not_found)  # the client names all its partitions again
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.incremental = True
        session.used_at = now
        return session

    def _new(self, session_id: int, wanted: Iterable[Wanted], uses_ids: bool, now: float) -> Session:
        """A session without partitions, or with too many, is not kept."""
        session = Session(session_id, uses_ids, used_at=now)
        session.wanted = {(w.topic, w.index): w for w in wanted}
        if session.id and session.wanted and self._partitions + len(session.wanted) <= PARTITIONS_MAX:
            self._sessions[session.id] = session
            self._partitions += len(session.wanted)
        else:
            session.id = SESSIONLESS
        return session

    def _forget(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.wanted)

    def _known(self, session_id: int, epoch: int, uses_ids: bool) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(Code.fetch_session_id_not_found)
        if session.epoch != epoch:
            raise KafkaError(Code.invalid_fetch_session_epoch)
        if session.uses_ids != uses_ids:
            raise KafkaError(Code.fetch_session_topic_id_error)
        return session

    def _free_id(self, now: float) -> int:
        """A new session's id, or 0 when the cache is full of sessions in use."""
        if len(self._sessions) >= self._sessions_max and not self._evict(now):
            return SESSIONLESS
        while (candidate := self._random.randrange(1, 2**31 - 1)) in self._sessions:
            pass
        return candidate

    def _evict(self, now: float) -> bool:
        oldest = min(self._sessions.values(), key=lambda session: session.used_at, default=None)
        if oldest is None or now - oldest.used_at < EVICTION_SECONDS:
            return False
        self._forget(oldest.id)
        return True
