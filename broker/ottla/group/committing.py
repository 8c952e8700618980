"""One OffsetCommit on its way: checked, gathered with others, in force when appended, answered when committed."""

from collections.abc import Callable, Sequence

from ottla.errors import Code, KafkaError
from ottla.group.contract.effects import Record
from ottla.group.offsets.records import CommittedOffset
from ottla.group.shard import Shard
from ottla.wire.offset_commit import CommitRequest

__all__ = ["Commit", "check_commit"]

GROUP_NOT_FOUND_SINCE = 9


class Commit:
    """`told` is called with the code that the partitions of `entries` get: a plain call, for this is a hot path."""

    __slots__ = ("_entries", "_group_id", "_shard", "_told")

    def __init__(
        self,
        shard: Shard,
        group_id: str,
        entries: Sequence[tuple[str, int, CommittedOffset]],
        told: Callable[[Code], None],
    ) -> None:
        self._shard = shard
        self._group_id = group_id
        self._entries = entries
        self._told = told

    def begin(self, records: Sequence[Record]) -> None:
        self._shard.gather(records, self)

    def appended(self, last_offset: int) -> None:
        shard = self._shard
        shard.replayed_offset = last_offset
        for topic, partition, committed in self._entries:
            shard.keep_offset(self._group_id, topic, partition, committed)

    def ended(self, code: Code) -> None:
        self._told(code)


def check_commit(shard: Shard, request: CommitRequest, version: int) -> None:
    """Whether this member may commit; a group that does not exist is made by a commit without members (KafkaError)."""
    group = shard.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch
    if group is not None:
        group.check_commit(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=generation,
            version=version,
        )
        if request.member_id:
            group.committed(request.member_id, shard.clock.monotonic())
    elif generation >= 0:
        raise KafkaError(Code.group_id_not_found if version >= GROUP_NOT_FOUND_SINCE else Code.illegal_generation)
