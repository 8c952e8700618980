"""Offsets that transactions brought and that their markers have not decided yet. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

from ottla.group.offsets.records import CommittedOffset

__all__ = ["Pending", "PendingOffsets"]

Pending: TypeAlias = tuple[str, int, CommittedOffset]


class PendingOffsets:
    """By producer and group. A producer has one transaction at a time.

    Each has the place in the log of its record: of several commits for one partition that are in force, transactional
    or not, the one whose record is the latest wins, whenever their markers come (as in Kafka).
    """

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[tuple[str, int], tuple[CommittedOffset, int]]]] = {}

    def keep(self, producer_id: int, group_id: str, entries: Sequence[Pending], *, position: int) -> None:
        found = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        for topic, partition, committed in entries:
            found[topic, partition] = committed, position

    def abort(self, producer_id: int) -> None:
        self._by_producer.pop(producer_id, None)

    def commit(self, producer_id: int) -> dict[str, list[Pending]]:
        """What this producer's transaction brought, by group; it is not pending any longer.

        Records before it that others have brought for the same partitions go too: they must not come into force later.
        """
        found = self._by_producer.pop(producer_id, {})
        for group_id, entries in found.items():
            for (topic, partition), (_, position) in entries.items():
                self.supersede(group_id, topic, partition, before=position)
        return {
            group_id: [(topic, partition, one) for (topic, partition), (one, _) in entries.items()]
            for group_id, entries in found.items()
        }

    def supersede(self, group_id: str, topic: str, partition: int, *, before: int) -> None:
        """A record at this place of the log is in force: pending ones from before it must not replace it."""
        for groups in self._by_producer.values():
            entries = groups.get(group_id)
            if entries is not None and (topic, partition) in entries and entries[topic, partition][1] < before:
                del entries[topic, partition]

    def concerns(self, group_id: str, topic: str, partition: int) -> bool:
        return any((topic, partition) in groups.get(group_id, ()) for groups in self._by_producer.values())

    def has_group(self, group_id: str) -> bool:
        return any(group_id in groups for groups in self._by_producer.values())
