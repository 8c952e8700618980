"""What every type of group offers to the shard that keeps it."""

from collections.abc import Sequence
from typing import Any, Protocol

from ottla.coordination.core.effects import Effects, Record

__all__ = ["Group"]


class Group(Protocol):
    """Pure. Methods that refuse raise KafkaError with Kafka's code and change nothing."""

    group_id: str

    @property
    def type(self) -> str:
        """As ListGroups says it: "classic", "consumer" or "share"."""

    @property
    def state(self) -> str:
        """As ListGroups says it: "Stable", "Empty", …"""

    @property
    def summary(self) -> str:
        """One line for the broker's log when its state changes: generation, members, why."""

    @property
    def protocol_type(self) -> str: ...
    @property
    def is_empty(self) -> bool:
        """No members: it may be deleted, and its offsets grow old."""

    @property
    def empty_since_ms(self) -> int | None:
        """Since when its offsets grow old, on the wall clock. None: each offset from its own commit on."""

    @property
    def may_expire(self) -> bool:
        """Whether it goes by itself when it is empty and has no offsets."""

    @property
    def offsets_may_expire(self) -> bool:
        """Whether any of its offsets may grow old now (those of subscribed topics never do)."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether members consume this topic: then its offsets do not expire and OffsetDelete is refused."""

    def check_commit(
        self, *, member_id: str, instance_id: str | None, generation: int, version: int, transactional: bool = False
    ) -> None:
        """Whether this member may commit in this generation (or member epoch). `version` is OffsetCommit's."""

    def check_fetch(self, *, member_id: str | None, member_epoch: int) -> None:
        """KIP-848: whether this member may read offsets in this epoch."""

    def committed(self, member_id: str, now: float) -> None:
        """A commit came from this member: a sign of life."""

    def check_offset_delete(self) -> None:
        """Whether OffsetDelete is allowed at all; subscribed topics are refused one by one."""

    def tombstones(self) -> Sequence[Record]:
        """What deletes the group itself from the log; its offsets are the shard's."""

    def tick(self, now: float) -> Effects:
        """Time has passed. Ends with a Wake when there is anything to wait for."""

    def loaded(self, now: float) -> Effects:
        """The shard is loaded: timers begin."""

    def unload(self) -> Effects:
        """This broker leads the partition no longer: a Reply with NOT_COORDINATOR to everyone who waits."""

    # The classic protocol. A consumer group serves it to members that have not moved yet (KIP-848 migration).

    def join(self, request: Any, to: Any, now: float) -> Effects: ...
    def sync(self, request: Any, to: Any, now: float) -> Effects: ...
    def heartbeat(self, *, member_id: str, instance_id: str | None, generation: int, now: float) -> Effects:
        """KafkaError is the answer; otherwise it is NONE."""

    def leave(self, members: Sequence[Any], to: Any, now: float) -> Effects: ...
