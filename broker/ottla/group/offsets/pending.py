"""Pending offsets: written by transactions whose marker (commit or abort) is not in the log yet. Pure."""

from collections.abc import Sequence
from typing import TypeAlias

from ottla.group.offsets.records import CommittedOffset

__all__ = ["Pending", "PendingOffsets"]

Pending: TypeAlias = tuple[str, int, CommittedOffset]


class PendingOffsets:
    """Pending offsets by producer and group. A producer has one transaction at a time.

    Each keeps the log offset of its record. As in Kafka, of several commits for one partition, transactional or not,
    the one with the latest record wins, in whatever order the markers arrive.
    """

    __slots__ = ("_by_producer", "kept_bytes")

    def __init__(self) -> None:
        self.kept_bytes = 0
        self._by_producer: dict[int, dict[str, dict[tuple[str, int], tuple[CommittedOffset, int]]]] = {}

    def record(self, producer_id: int, group_id: str, entries: Sequence[Pending], *, position: int) -> None:
        found = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        for topic, partition, committed in entries:
            if (before := found.get((topic, partition))) is not None:
                self.kept_bytes -= before[0].kept_bytes
            found[topic, partition] = committed, position
            self.kept_bytes += committed.kept_bytes

    def abort(self, producer_id: int) -> None:
        self._take(producer_id)

    def _take(self, producer_id: int) -> dict[str, dict[tuple[str, int], tuple[CommittedOffset, int]]]:
        found = self._by_producer.pop(producer_id, {})
        for entries in found.values():
            self.kept_bytes -= sum(one.kept_bytes for one, _ in entries.values())
        return found

    def commit(self, producer_id: int) -> dict[str, list[Pending]]:
        """Remove this producer's pending offsets and return them by group.

        Earlier pending records of other producers for the same partitions are dropped: their markers must not apply
        them.
        """
        found = self._take(producer_id)
        for group_id, entries in found.items():
            for (topic, partition), (_, position) in entries.items():
                self.drop_older(group_id, topic, partition, before=position)
        return {
            group_id: [(topic, partition, one) for (topic, partition), (one, _) in entries.items()]
            for group_id, entries in found.items()
        }

    def drop_older(self, group_id: str, topic: str, partition: int, *, before: int) -> None:
        """A commit with a record at `before` was applied: pending records before it must not replace it."""
        for groups in self._by_producer.values():
            entries = groups.get(group_id)
            if entries is not None and (topic, partition) in entries and entries[topic, partition][1] < before:
                self.kept_bytes -= entries.pop((topic, partition))[0].kept_bytes

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        return any((topic, partition) in groups.get(group_id, ()) for groups in self._by_producer.values())

    def has_pending_of_group(self, group_id: str) -> bool:
        return any(group_id in groups for groups in self._by_producer.values())
