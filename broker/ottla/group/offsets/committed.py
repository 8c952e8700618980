"""The committed offsets of one group. Pure."""

from collections.abc import Iterator

from ottla.group.contract.group import Group
from ottla.group.offsets.records import NO_EXPIRY, CommittedOffset

__all__ = ["GroupOffsets"]


class GroupOffsets:
    """`written` is the place in the log of the last record that changed them: readers wait until it is committed."""

    __slots__ = ("by_topic", "written")

    def __init__(self) -> None:
        self.by_topic: dict[str, dict[int, CommittedOffset]] = {}
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

    def keep(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        partitions = self.by_topic.get(topic)
        if partitions is None:
            self.by_topic[topic] = {partition: committed}
        else:
            partitions[partition] = committed

    def forget(self, topic: str, partition: int) -> None:
        partitions = self.by_topic.get(topic)
        if partitions is not None and partitions.pop(partition, None) is not None and not partitions:
            del self.by_topic[topic]

    def expired(self, group: Group, *, now_ms: int, retention_ms: int) -> Iterator[tuple[str, int]]:
        """Those that nobody consumes and whose time is over: counted from when the group became empty, or from the
        commit when it never had members; or until when an old client asked to keep them."""
        if not group.offsets_may_expire:
            return
        since_ms = group.empty_since_ms
        for topic, partition, committed in self:
            begin_ms = committed.committed_ms if since_ms is None else since_ms
            end_ms = begin_ms + retention_ms if committed.expires_ms == NO_EXPIRY else committed.expires_ms
            if now_ms >= end_ms and not group.is_subscribed(topic):
                yield topic, partition
