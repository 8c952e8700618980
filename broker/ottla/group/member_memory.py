"""What members keep at this broker: subscriptions, or protocols with metadata and assignments. Bounded.

A member's bytes stay as long as its session, whether or not its connection does.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup
from ottla.group.contract.group import Group
from ottla.group.heartbeats.group import HeartbeatGroup
from ottla.ports import Clock

__all__ = ["MemberMemory"]

log = logging.getLogger("ottla.group")

COUNT_SECONDS_MIN = 1.0  # from one count of all members to the next


class MemberMemory:
    """Invariant: members keep at most `used_bytes`, which every request adds to.

    They are counted again when that sum reaches the limit: most requests take the place of earlier ones.
    """

    def __init__(self, limit_bytes: int, *, groups: Callable[[], Iterable[Group]], clock: Clock) -> None:
        self._limit_bytes = limit_bytes
        self._groups = groups
        self._clock = clock
        self._counted_at = float("-inf")
        self._waiting_bytes = 0
        self.used_bytes = 0

    def take(self, size: int) -> None:
        """Before a request of so many bytes is given to its group. COORDINATOR_NOT_AVAILABLE when it does not fit."""
        if self.used_bytes + size > self._limit_bytes:
            self._count()
        if self.used_bytes + size > self._limit_bytes:
            log.warning(
                "a member that brings %d bytes is refused: %d are kept (ottla.group.members.bytes.max=%d)",
                size,
                self.used_bytes,
                self._limit_bytes,
            )
            raise KafkaError(Code.coordinator_not_available, "members keep too many bytes at this broker")
        self.used_bytes += size

    @contextmanager
    def waiting(self, size: int) -> Iterator[None]:
        """A request of so many bytes, taken before, has not reached its group yet."""
        self._waiting_bytes += size
        try:
            yield
        finally:
            self._waiting_bytes -= size

    def _count(self) -> None:
        now = self._clock.monotonic()
        if now - self._counted_at < COUNT_SECONDS_MIN:
            return
        self._counted_at = now
        self.used_bytes = self._waiting_bytes + sum(map(_kept_bytes, self._groups()))


def _kept_bytes(group: Group) -> int:
    if isinstance(group, HeartbeatGroup):
        return group.kept_bytes
    return sum(member.kept_bytes for member in group.members.values()) if isinstance(group, ClassicGroup) else 0
