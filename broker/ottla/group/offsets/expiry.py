"""Removals of one turn of the loop: expired offsets and empty groups, as one batch of tombstones. Pure."""

from collections.abc import Sequence

from ottla.coordination.core.effects import Record
from ottla.group.contract.group import Group
from ottla.group.offsets.records import offset_key

__all__ = ["TOMBSTONES_PER_BATCH_MAX", "Removal", "tombstones"]

TOMBSTONES_PER_BATCH_MAX = 500  # then the loop serves other work
TOMBSTONES_BYTES_MAX = 256 * 1024


def tombstones(group_id: str, gone: Sequence[tuple[str, int]]) -> list[Record]:
    return [(offset_key(group_id, topic, partition), None) for topic, partition in gone]


class Removal:
    def __init__(self) -> None:
        self.records: list[Record] = []
        self.groups: list[Group] = []
        self.offsets = 0
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        return len(self.records) >= TOMBSTONES_PER_BATCH_MAX or self._size_bytes >= TOMBSTONES_BYTES_MAX

    def add_offset(self, group_id: str, topic: str, partition: int) -> None:
        self._add(offset_key(group_id, topic, partition))
        self.offsets += 1

    def add_group(self, group: Group) -> None:
        for key, _ in group.tombstones():
            self._add(key)
        self.groups.append(group)

    def _add(self, key: bytes) -> None:
        self.records.append((key, None))
        self._size_bytes += len(key)
