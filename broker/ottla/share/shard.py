"""The states of one partition of the state topic, for as long as this broker leads it in one epoch.

A change is in force when it is appended, and answered when it is committed. A question that changes nothing writes a
record all the same: one who has been replaced and does not know it yet cannot commit, and so tells no old news. Only
fences of lower epochs, which nobody takes back, and summaries for tools are told from memory.

The log keeps everything from the oldest snapshot that is still somebody's newest; what is before goes with `prune`, and
`snapshot_cold` makes that move on.
"""

import asyncio
import uuid
from collections.abc import Callable, Collection, Sequence
from functools import partial

from ottla.coordination.core.records import Record
from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.share.core import records
from ottla.share.core.messages import UNINITIALIZED, ShareKey, ShareState, StateBatch, Summary
from ottla.share.core.state import Kept, Update, begun, merged

__all__ = ["ShareShard"]

NOTHING = -1


class ShareShard(CoordinatorShard):
    holds = "share-partitions"

    def __init__(
        self,
        partition: Partition,
        *,
        clock: Clock,
        write_rules: WriteRules,
        updates_per_snapshot: Callable[[], int],
    ) -> None:
        super().__init__(partition, clock=clock, write_rules=write_rules)
        self.states: dict[ShareKey, Kept] = {}
        self._updates_per_snapshot = updates_per_snapshot
        self._snapshots: dict[ShareKey, int] = {}  # where the newest one is in the log
        self._written: dict[ShareKey, int] = {}  # where its last record is
        self._orphans: set[ShareKey] = set()

    @property
    def count(self) -> int:
        return len(self.states)

    # questions, as Persister describes them

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        kept = begun(self.states.get(key), state_epoch=state_epoch, start=start, now_ms=self.clock.wall_ms())
        if kept is not None:
            self._snapshot(key, kept)
        else:
            self._touch(key)
        await self._until_key_committed(key)

    async def read(self, key: ShareKey, *, leader_epoch: int) -> ShareState:
        kept = self.states.get(key)
        if kept is None:
            self._touch(key)
        else:
            kept.require_leader(leader_epoch)
            kept = self._update(key, kept, Update(leader_epoch=leader_epoch))
        await self._until_key_committed(key)
        return ShareState() if kept is None else kept.state

    async def write(
        self, key: ShareKey, *, state_epoch: int, leader_epoch: int, start: int, batches: Sequence[StateBatch]
    ) -> None:
        if key not in self.states or state_epoch > self.states[key].state_epoch:
            self._touch(key)
            await self._until_key_committed(key)
        kept = self.states.get(key)
        if kept is None:
            raise KafkaError(Code.group_id_not_found, f"{key} has no state")
        kept.require_leader(leader_epoch)
        kept.require_epoch(state_epoch)
        self._update(key, kept, Update(leader_epoch=leader_epoch, start=start, batches=tuple(batches)))
        await self._until_key_committed(key)

    async def delete(self, key: ShareKey) -> None:
        self._delete(key)
        await self._until_key_committed(key)

    async def summary(self, key: ShareKey) -> Summary:
        kept = self.states.get(key)
        await self._until_key_committed(key)
        return Summary() if kept is None else kept.summary

    async def _until_key_committed(self, key: ShareKey) -> None:
        """What is told of this key may leave. KafkaError when that will not be known here."""
        await self.until_committed(self._written.get(key, NOTHING))

    # writing: append and put in force; KafkaError: neither

    def _update(self, key: ShareKey, kept: Kept, update: Update) -> Kept:
        after = kept.updated(update)
        if after.updates > self._updates_per_snapshot():
            after = after.snapshotted(now_ms=self.clock.wall_ms())
            self._snapshot(key, after)
            return after
        start = UNINITIALIZED if after.start == kept.start else after.start
        written = Update(
            leader_epoch=after.leader_epoch, start=start, batches=merged((), update.batches, start=after.start)
        )
        self._append(key, records.update_record(key, written, snapshot_epoch=kept.snapshot_epoch))
        self.states[key] = after
        return after

    def _touch(self, key: ShareKey) -> None:
        """A record that changes nothing."""
        if (kept := self.states.get(key)) is None:
            self._delete(key)
        else:
            self._update(key, kept, Update(leader_epoch=kept.leader_epoch))

    def _snapshot(self, key: ShareKey, kept: Kept) -> None:
        self._snapshots[key] = self._append(key, records.snapshot_record(key, kept))
        self.states[key] = kept

    def _delete(self, key: ShareKey) -> None:
        offset = self._append(key, records.deletion_record(key))
        self.states.pop(key, None)
        self._snapshots.pop(key, None)
        self._writer.when_committed(offset, partial(self._forget, key))

    def _append(self, key: ShareKey, record: Record) -> int:
        if not self.leads:
            raise KafkaError(Code.not_coordinator)
        offset = self._written[key] = self._writer.append([record])
        return offset

    def _forget(self, key: ShareKey, _: Code) -> None:
        """Until its end is committed, whoever asks for it must wait."""
        if key not in self.states:
            self._written.pop(key, None)

    # upkeep: KafkaError when it must wait

    def topics_deleted(self, topic_ids: Collection[uuid.UUID]) -> None:
        for key in [key for key in self.states if key.topic_id in topic_ids]:
            self._delete(key)

    def drop_orphans(self, is_known: Callable[[uuid.UUID], bool]) -> int:
        """States of topics that nobody has known for two rounds: they were deleted while nobody led here.

        Once is not enough: this broker may have its part of the log before it hears of a topic.
        """
        orphans = {key for key in self.states if not is_known(key.topic_id)}
        gone, self._orphans = orphans & self._orphans, orphans
        for key in gone:
            self._delete(key)
        return len(gone)

    async def snapshot_cold(self, *, now_ms: int, age_ms: int) -> int:
        """Write anew what has not been written for so long, where the log has records that nobody needs; how many."""
        if self.partition.log.end_offset - self._oldest_needed() <= len(self.states):
            return 0
        cold = [key for key, kept in self.states.items() if now_ms - kept.written_ms >= age_ms]
        for key in cold:
            if key in self.states:
                self._snapshot(key, self.states[key].snapshotted(now_ms=now_ms))
            await asyncio.sleep(0)
        return len(cold)

    async def prune(self) -> int:
        """Delete what newer snapshots replace, once those are committed; how many records."""
        log = self.partition.log
        keep_from, before = self._oldest_needed(), log.start_offset
        if keep_from <= before:
            return 0
        await self.until_committed(log.end_offset - 1)
        if not self.leads:
            return 0
        self.partition.delete_before(keep_from)
        return log.start_offset - before

    def _oldest_needed(self) -> int:
        return min(self._snapshots.values(), default=self.partition.log.end_offset)

    # beginning and end

    def replay(self, key: memoryview, value: memoryview | None) -> None:
        share_key, read = records.read(key, value)
        self._written[share_key] = self.replayed_offset
        if isinstance(read, Kept):
            self.states[share_key] = read
            self._snapshots[share_key] = self.replayed_offset
        elif read is None:
            for places in (self.states, self._snapshots, self._written):
                places.pop(share_key, None)
        elif share_key in self.states:  # otherwise its snapshot was pruned: a newer one follows
            self.states[share_key] = self.states[share_key].updated(read)

    def loaded(self) -> None:
        self.loading = False

    def unload(self) -> None:
        """Another broker leads: whoever waits here is told by the partition."""
        self.ended = True
