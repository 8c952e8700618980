"""Committed offsets: those of one group, and those of all groups of a shard. Pure."""

from collections.abc import Container, Iterator, Sequence
from typing import TypeAlias

from ottla.group.contract.group import Group
from ottla.group.offsets.pending import Pending, PendingOffsets
from ottla.group.offsets.records import NO_EXPIRY, CommittedOffset

__all__ = ["Found", "GroupOffsets", "ShardOffsets"]

Found: TypeAlias = tuple[str, str, int, CommittedOffset]
"""Group, topic, partition, and its committed offset."""


TOPIC_BYTES = 300  # in memory, with its name


class GroupOffsets:
    """`written` is the log offset of the last record that changed them: reads wait until it is committed."""

    __slots__ = ("by_topic", "kept_bytes", "written")

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, CommittedOffset]] = {}
        self.kept_bytes = 0
        self.written = -1

    def __bool__(self) -> bool:
        return bool(self.by_topic)

    def __len__(self) -> int:
        return sum(map(len, self.by_topic.values()))

    def __iter__(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed

    def get(self, topic: str, partition: int) -> CommittedOffset | None:
        partitions = self.by_topic.get(topic)
        return None if partitions is None else partitions.get(partition)

    def record(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        partitions = self.by_topic.get(topic)
        if partitions is None:
            partitions = self.by_topic[topic] = {}
            self.kept_bytes += TOPIC_BYTES
        if (before := partitions.get(partition)) is not None:
            self.kept_bytes -= before.kept_bytes
        partitions[partition] = committed
        self.kept_bytes += committed.kept_bytes

    def remove(self, topic: str, partition: int) -> None:
        partitions = self.by_topic.get(topic)
        if partitions is None or (before := partitions.pop(partition, None)) is None:
            return
        self.kept_bytes -= before.kept_bytes
        if not partitions:
            del self.by_topic[topic]
            self.kept_bytes -= TOPIC_BYTES

    def added_bytes(self, entries: Sequence[Pending]) -> int:
        """What they would take beside those that they replace."""
        added = 0
        for topic, partition, committed in entries:
            partitions = self.by_topic.get(topic)
            before = None if partitions is None else partitions.get(partition)
            added += committed.kept_bytes - (0 if before is None else before.kept_bytes)
            added += TOPIC_BYTES if partitions is None else 0
        return added

    def expired(self, group: Group, *, now_ms: int, retention_ms: int) -> Iterator[tuple[str, int]]:
        """Offsets that no member consumes and whose retention has passed since the group became empty, or since their
        commit if it never had members; or whose expiry an old client has set itself."""
        if not group.offsets_may_expire:
            return
        since_ms = group.empty_since_ms
        for topic, partition, committed in self:
            begin_ms = committed.committed_ms if since_ms is None else since_ms
            end_ms = begin_ms + retention_ms if committed.expires_ms == NO_EXPIRY else committed.expires_ms
            if now_ms >= end_ms and not group.is_subscribed(topic):
                yield topic, partition


NOTHING = GroupOffsets()


class ShardOffsets:
    """`position` is the log offset of the record that commits an offset, or of the marker that ends a transaction."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupOffsets] = {}
        self._pending = PendingOffsets()
        self._kept_bytes = 0

    def get(self, group_id: str) -> GroupOffsets | None:
        return self._groups.get(group_id)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """An open transaction has an offset for this partition."""
        return self._pending.has_pending(group_id, topic, partition)

    def has_pending(self, group_id: str) -> bool:
        return self._pending.has_pending_of_group(group_id)

    def has(self, group_id: str) -> bool:
        """Also while their deletion is not committed yet, and if all of them are pending."""
        return group_id in self._groups or self._pending.has_pending_of_group(group_id)

    @property
    def kept_bytes(self) -> int:
        return self._kept_bytes + self._pending.kept_bytes

    def added_bytes(self, group_id: str, entries: Sequence[Pending]) -> int:
        return self._groups.get(group_id, NOTHING).added_bytes(entries)

    def record(self, group_id: str, topic: str, partition: int, committed: CommittedOffset, *, position: int) -> None:
        self._pending.drop_older(group_id, topic, partition, before=position)
        offsets = self._groups.get(group_id)
        if offsets is None:
            offsets = self._groups[group_id] = GroupOffsets()
        self._record(offsets, [(topic, partition, committed)], position)

    def _record(self, offsets: GroupOffsets, entries: Sequence[Pending], position: int) -> None:
        before_bytes = offsets.kept_bytes
        for topic, partition, committed in entries:
            offsets.record(topic, partition, committed)
        offsets.written = position
        self._kept_bytes += offsets.kept_bytes - before_bytes

    def remove(self, group_id: str, topic: str, partition: int, *, position: int) -> None:
        offsets = self._groups.get(group_id)
        if offsets is not None:
            before_bytes = offsets.kept_bytes
            offsets.remove(topic, partition)
            offsets.written = position
            self._kept_bytes += offsets.kept_bytes - before_bytes

    def drop_if_empty(self, group_id: str) -> None:
        if not self._groups.get(group_id):
            self._groups.pop(group_id, None)

    def drop_empty(self, *, besides: Container[str]) -> None:
        """Of all groups but these."""
        for group_id in [each for each, offsets in self._groups.items() if not offsets and each not in besides]:
            del self._groups[group_id]

    # inside transactions

    def record_pending(self, producer_id: int, group_id: str, entries: Sequence[Pending], *, position: int) -> None:
        self._pending.record(producer_id, group_id, entries, position=position)

    def abort(self, producer_id: int) -> None:
        self._pending.abort(producer_id)

    def commit(self, producer_id: int, *, position: int) -> list[str]:
        """Apply the pending offsets of this producer. Returns the groups they belong to."""
        found = {group_id: entries for group_id, entries in self._pending.commit(producer_id).items() if entries}
        for group_id, entries in found.items():
            self._record(self._groups.setdefault(group_id, GroupOffsets()), entries, position)
        return list(found)

    # finding

    def of_topics(self, topics: set[str]) -> list[Found]:
        return [
            (group_id, topic, partition, committed)
            for group_id, offsets in self._groups.items()
            if not topics.isdisjoint(offsets.by_topic)
            for topic, partition, committed in offsets
            if topic in topics
        ]
