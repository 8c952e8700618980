"""Bounds the memory that members use at this broker: subscriptions, protocols with metadata, assignments.

A member's bytes are kept as long as its session lasts, with or without a connection.
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

COUNT_SECONDS_MIN = 1.0  # between two counts of all members


class MemberMemory:
    """Invariant: members use at most `used_bytes`. Every request adds to it.

    When it reaches the limit, all members are counted again: most requests replace earlier ones.
    """

    def __init__(self, limit_bytes: int, *, groups: Callable[[], Iterable[Group]], clock: Clock) -> None:
        self._limit_bytes = limit_bytes
        self._groups = groups
        self._clock = clock
        self._counted_at = float("-inf")
        self._waiting_bytes = 0
        self.used_bytes = 0

    def take(self, size: int) -> None:
        """Reserve bytes before a request goes to its group. KafkaError: COORDINATOR_NOT_AVAILABLE at the limit."""
        if self.used_bytes + size > self._limit_bytes:
            self._count()
        if self.used_bytes + size > self._limit_bytes:
            log.warning(
                "a member's request of %d bytes is refused: members use %d bytes (ottla.group.members.bytes.max=%d)",
                size,
                self.used_bytes,
                self._limit_bytes,
            )
            raise KafkaError(Code.coordinator_not_available, "the members of this broker's groups use too much memory")
        self.used_bytes += size

    @contextmanager
    def waiting(self, size: int) -> Iterator[None]:
        """Count a request that was taken and has not reached its group yet."""
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
