"""Limits the memory of groups and their offsets, which stay for days after their clients have gone."""

import logging
from collections.abc import Callable, Sequence

from ottla.errors import Code, KafkaError
from ottla.group.offsets.pending import Pending
from ottla.group.shard import Shard

__all__ = ["LIMIT", "GroupMemory"]

log = logging.getLogger("ottla.group")

LIMIT = "ottla.groups.bytes.max"


class GroupMemory:
    """Of all shards of a broker. Beyond the limit there are no new groups; those that there are may grow until all use
    twice as much, so that strangers' groups do not stop the commits of others. What is there may be committed again,
    however much that is."""

    def __init__(self, bytes_max: int, shards: Callable[[], Sequence[Shard]]) -> None:
        self._bytes_max = bytes_max
        self._shards = shards

    def check(
        self, shard: Shard, group_id: str, entries: Sequence[Pending] = (), *, in_transaction: bool = False
    ) -> None:
        """KafkaError for a new group, or more offsets, when those that are there take all the memory. In a transaction
        offsets are kept beside those that they will replace."""
        added_bytes = shard.added_bytes(group_id, entries, in_transaction=in_transaction)
        if added_bytes <= 0:
            return
        used_bytes = sum(each.kept_bytes for each in self._shards())
        limit = 2 * self._bytes_max if group_id in shard.groups else self._bytes_max
        if used_bytes + added_bytes > limit:
            log.warning(
                "new groups and offsets are refused: all use %d bytes (%s=%d)", used_bytes, LIMIT, self._bytes_max
            )
            message = "the groups of this broker and their offsets use too much memory; they go when they expire"
            raise KafkaError(Code.coordinator_not_available, message)
