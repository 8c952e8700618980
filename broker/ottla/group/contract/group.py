"""The interface that every type of group implements for its shard."""

from collections.abc import Sequence
from typing import Any, Protocol

from ottla.coordination.core.effects import Effects, Record

__all__ = ["Group"]


class Group(Protocol):
    """Pure. A method that refuses raises KafkaError with Kafka's code and changes nothing."""

    group_id: str

    @property
    def type(self) -> str:
        """As in ListGroups: "classic", "consumer" or "share"."""

    @property
    def state(self) -> str:
        """As in ListGroups: "Stable", "Empty", …"""

    @property
    def summary(self) -> str:
        """One line for the broker's log when its state changes: generation, members, why."""

    @property
    def protocol_type(self) -> str: ...
    @property
    def is_empty(self) -> bool:
        """It has no members: it may be deleted, and its offsets may expire."""

    @property
    def empty_since_ms(self) -> int | None:
        """The wall-clock time from which its offsets age. None: each offset ages from its own commit."""

    @property
    def may_expire(self) -> bool:
        """Whether it is removed automatically when it is empty and has no offsets."""

    @property
    def offsets_may_expire(self) -> bool:
        """Whether any of its offsets may expire now (offsets of subscribed topics never do)."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether members consume this topic: then its offsets do not expire and OffsetDelete is refused."""

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        """Whether this member may commit in this generation (or member epoch). `version` is OffsetCommit's."""

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """KIP-848: whether this member may read offsets in this epoch."""

    def committed(self, member_id: str, now: float) -> None:
        """A commit of this member arrived: it renews the session."""

    def check_offset_delete(self) -> None:
        """Whether OffsetDelete is allowed at all; subscribed topics are refused one by one."""

    def tombstones(self) -> Sequence[Record]:
        """The tombstones of the group's own records; those of its offsets are the shard's."""

    def tick(self, now: float) -> Effects:
        """Handle deadlines up to `now`. Returns a Wake if there is a later one."""

    def loaded(self, now: float) -> Effects:
        """The shard is loaded: start the timers."""

    def unload(self) -> Effects:
        """Another broker leads the partition: reply NOT_COORDINATOR to every waiting request."""

    # The classic protocol. A consumer group serves it to members that have not migrated yet (KIP-848).

    def join(self, request: Any, to: Any, now: float) -> Effects: ...
    def sync(self, request: Any, to: Any, now: float) -> Effects: ...
    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        """KafkaError is the answer; otherwise it is NONE."""

    def leave(self, members: Sequence[Any], to: Any, now: float) -> Effects: ...
