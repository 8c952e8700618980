"""Offsets that transactions brought and that their markers have not decided yet. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

from ottla.group.offset_records import CommittedOffset

__all__ = ["Pending", "PendingOffsets"]

Pending: TypeAlias = tuple[str, int, CommittedOffset]


class PendingOffsets:
    """By producer and group. A producer has one transaction at a time."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[tuple[str, int], CommittedOffset]]] = {}

    def keep(self, producer_id: int, group_id: str, entries: Sequence[Pending]) -> None:
        found = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        for topic, partition, committed in entries:
            found[topic, partition] = committed

    def take(self, producer_id: int) -> dict[str, list[Pending]]:
        """What this producer's transaction brought, by group; it is not pending any longer."""
        found = self._by_producer.pop(producer_id, {})
        return {
            group_id: [(topic, partition, one) for (topic, partition), one in entries.items()]
            for group_id, entries in found.items()
        }

    def supersede(self, group_id: str, topic: str, partition: int) -> None:
        """A later record of the log has another offset: the pending one shall not come after it."""
        for groups in self._by_producer.values():
            groups.get(group_id, {}).pop((topic, partition), None)

    def concerns(self, group_id: str, topic: str, partition: int) -> bool:
        return any((topic, partition) in groups.get(group_id, ()) for groups in self._by_producer.values())

    def has_group(self, group_id: str) -> bool:
        return any(group_id in groups for groups in self._by_producer.values())
