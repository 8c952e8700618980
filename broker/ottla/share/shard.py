"""The states of one partition of the state topic, while this broker leads it in one epoch.

A change is applied when it is appended, and answered when it is committed. A request without a change writes a record
nevertheless: a coordinator that has been replaced without knowing it cannot commit, so it never answers with stale
state. Only refusals of lower epochs, which stay valid, and summaries for tools are answered from memory.

The log must keep everything from the oldest snapshot that is still the latest of its key. `prune` deletes records
before it; `snapshot_cold` writes new snapshots so that this offset advances.
"""

import asyncio
import uuid
from collections.abc import Callable, Collection, Sequence
from functools import partial

from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.share.core import deciding, records
from ottla.share.core.deciding import Change
from ottla.share.core.messages import ShareKey, ShareState, StateBatch, Summary
from ottla.share.core.state import Kept, Update, initialized

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
        self._snapshots: dict[ShareKey, int] = {}  # log offset of the newest snapshot
        self._written: dict[ShareKey, int] = {}  # log offset of the last record
        self._orphans: set[ShareKey] = set()

    @property
    def count(self) -> int:
        return len(self.states)

    # requests, as in Persister

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        kept = initialized(self.states.get(key), state_epoch=state_epoch, start=start, now_ms=self.clock.wall_ms())
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
        """Wait until all records of this key are committed. KafkaError when this broker stops leading first."""
        await self.until_committed(self._written.get(key, NOTHING))

    # writing: append and apply, or neither (KafkaError)

    def _update(self, key: ShareKey, kept: Kept, update: Update) -> Kept:
        after = self._write(deciding.update(key, kept, update, **self._terms()))
        assert after is not None
        return after

    def _touch(self, key: ShareKey) -> None:
        """Write a record without a change."""
        self._write(deciding.touch(key, self.states.get(key), **self._terms()))

    def _terms(self) -> dict[str, int]:
        return {"updates_max": self._updates_per_snapshot(), "now_ms": self.clock.wall_ms()}

    def _snapshot(self, key: ShareKey, kept: Kept) -> None:
        self._write(deciding.snapshot(key, kept))

    def _delete(self, key: ShareKey) -> None:
        self._write(deciding.delete(key))

    def _write(self, change: Change) -> Kept | None:
        if not self.leads:
            raise KafkaError(Code.not_coordinator)
        effects = deciding.effects_of(change, on_appended=partial(self._put, change))
        self._runner.perform(change.key.group_id, effects)
        if change.after is None:
            self._runner.when_committed(self._written[change.key], partial(self._forget, change.key))
        return change.after

    def _put(self, change: Change, offset: int) -> None:
        key = change.key
        self._written[key] = offset
        if change.after is None:
            self.states.pop(key, None)
            self._snapshots.pop(key, None)
            return
        self.states[key] = change.after
        if change.is_snapshot:
            self._snapshots[key] = offset

    def _forget(self, key: ShareKey, _: Code) -> None:
        """Requests for the key wait until its deletion is committed."""
        if key not in self.states:
            self._written.pop(key, None)

    # upkeep: KafkaError when it is not possible now

    def topics_deleted(self, topic_ids: Collection[uuid.UUID]) -> None:
        for key in [key for key in self.states if key.topic_id in topic_ids]:
            self._delete(key)

    def drop_orphans(self, is_known: Callable[[uuid.UUID], bool]) -> int:
        """Delete states of topics that were unknown in two rounds: they were deleted while this partition had no
        leader.

        One round is not enough: this broker may load the log before it has the metadata of a new topic.
        """
        orphans = {key for key in self.states if not is_known(key.topic_id)}
        gone, self._orphans = orphans & self._orphans, orphans
        for key in gone:
            self._delete(key)
        return len(gone)

    async def snapshot_cold(self, *, now_ms: int, age_ms: int) -> int:
        """Write new snapshots of states without a write for `age_ms`, if that lets records be pruned. Returns how
        many."""
        if self.partition.log.end_offset - self._oldest_needed() <= len(self.states):
            return 0
        cold = [key for key, kept in self.states.items() if now_ms - kept.written_ms >= age_ms]
        for key in cold:
            if key in self.states:
                self._snapshot(key, self.states[key].snapshotted(now_ms=now_ms))
            await asyncio.sleep(0)
        return len(cold)

    async def prune(self) -> int:
        """Delete records that newer committed snapshots replace. Returns how many."""
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
        """Another broker leads: the partition's waiters are answered by the partition."""
        self.ended = True
        self._runner.stop()
