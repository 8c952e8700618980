"""The groups and offsets of one partition of the offsets topic, while this broker leads it in one epoch."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ottla.coordination.computing import Computing
from ottla.coordination.core.effects import Compute, Effects, Record
from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import Gathered, WriteRules
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.member import Join, Leave, Sync
from ottla.group.consumer.group import ConsumerGroup
from ottla.group.consumer.heartbeat import Heartbeat, group_for, heartbeat
from ottla.group.consumer.membership import ConsumerRules
from ottla.group.contract import records as record_types
from ottla.group.contract.group import Group
from ottla.group.offsets.committed import Found, ShardOffsets
from ottla.group.offsets.expiry import TOMBSTONES_PER_BATCH_MAX, Removal, tombstones
from ottla.group.offsets.pending import Pending
from ottla.group.offsets.records import (
    CommittedOffset,
    offset_key,
    offset_value,
    read_offset_key,
    read_offset_value,
)
from ottla.group.share import heartbeat as share
from ottla.group.share.group import ShareGroup, ShareRules
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.storage.core.verification import Ticket
from ottla.wire.text_limits import size_bytes

__all__ = ["Shard"]

log = logging.getLogger("ottla.group")

GROUPS_PER_TURN_MAX = 200  # examined by expiry
UNJOINED_GROUPS_MAX = 500
GROUP_BYTES = 1_200  # in memory, beside its id


class Shard(CoordinatorShard):
    """`rules` are those of classic groups."""

    holds = "groups"

    def __init__(
        self,
        partition: Partition,
        *,
        clock: Clock,
        rules: Rules,
        write_rules: WriteRules,
        consumer_rules: "Callable[[Shard], ConsumerRules]",
        share_rules: "Callable[[Shard], ShareRules]",
        computing: Computing,
    ) -> None:
        super().__init__(partition, clock=clock, write_rules=write_rules)
        self.rules = rules
        self.consumer_rules = consumer_rules(self)
        self.share_rules = share_rules(self)
        self.groups: dict[str, Group] = {}
        self._groups_bytes = 0
        self.offsets = ShardOffsets()
        self._computing = computing
        self._computations: set[asyncio.Task[None]] = set()
        self._decided_meanwhile: list[tuple[int, bool, int]] = []
        self._unjoined: dict[str, None] = {}  # groups that may never have had a member, the oldest first
        self._logged: dict[str, str] = {}  # group id → the state that was logged last

    @property
    def count(self) -> int:
        return len(self.groups)

    @property
    def kept_bytes(self) -> int:
        """Of groups and offsets: what stays when their clients have gone. Not of members."""
        return self._groups_bytes + self.offsets.kept_bytes

    def added_bytes(self, group_id: str, entries: Sequence[Pending], *, in_transaction: bool) -> int:
        """What it would take to keep these offsets, and the group if it is a new one."""
        added = 0 if group_id in self.groups else _kept_bytes_of(group_id)
        if in_transaction:
            return added + sum(committed.kept_bytes for _, _, committed in entries)
        return added + self.offsets.added_bytes(group_id, entries)

    # requests of members. `to` is answered by a Reply, unless the call raises KafkaError

    def join(self, group_id: str, request: Join, to: Any) -> None:
        """A new member may create the group; for a member with an id it must exist."""
        group = self.groups.get(group_id)
        if group is None:
            if request.member_id:
                raise KafkaError(Code.unknown_member_id)
            group = self.new_classic_group(group_id)
            self.put_group(group)
            self._limit_unjoined(group_id)
        self._perform(group, group.join(request, to, self.clock.monotonic()))
        self._drop_unjoined(group_id)

    def sync(self, group_id: str, request: Sync, to: Any) -> None:
        group = self.require_group(group_id)
        self._perform(group, group.sync(request, to, self.clock.monotonic()))

    def leave(self, group_id: str, members: Sequence[Leave], to: Any) -> None:
        group = self.require_group(group_id)
        self._perform(group, group.leave(members, to, self.clock.monotonic()))

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> None:
        """Raises KafkaError, or the answer is NONE."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(Code.unknown_member_id)
        now = self.clock.monotonic()
        effects = group.heartbeat(member_id=member_id, instance_id=instance_id, generation=generation, now=now)
        if effects:
            self._perform(group, effects)

    def consumer_heartbeat(self, request: Heartbeat, to: Any) -> ConsumerGroup:
        group, moved = group_for(request, self.groups.get(request.group_id), self.consumer_rules)
        self._perform(group, heartbeat(group, request, to, self.clock.monotonic(), moved=moved))
        return group

    def share_heartbeat(self, request: share.ShareHeartbeat, to: Any) -> ShareGroup:
        group = share.group_for(request, self.groups.get(request.group_id), self.share_rules)
        self._perform(group, share.heartbeat(group, request, to, self.clock.monotonic()))
        return group

    def require_group(self, group_id: str) -> Group:
        """The group of a member's request. KafkaError: UNKNOWN_MEMBER_ID."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(Code.unknown_member_id)
        return group

    def _perform(self, group: Group, effects: Effects) -> None:
        self._runner.perform(group.group_id, effects)

    def on_perform(self, key: str) -> None:
        """Log the group if its state has changed."""
        group = self.groups.get(key)
        if group is None:
            return
        before, state = self._logged.get(key, "Empty"), group.state
        if state != before:
            self._logged[key] = state
            log.info("group %s was %s, is %s: %s", key, before, state, group.summary)

    def on_deadline(self, key: str) -> None:
        group = self.groups.get(key)
        if group is not None and self.leads:
            self._perform(group, group.tick(self.clock.monotonic()))
            self._drop_unjoined(key)

    def on_compute(self, key: str, compute: Compute) -> None:
        """The result is dropped if another group has replaced this one."""
        group = self.groups.get(key)
        if group is None:
            return
        task = asyncio.ensure_future(self._compute(group, compute))
        self._computations.add(task)
        task.add_done_callback(self._computations.discard)

    async def _compute(self, group: Group, compute: Compute) -> None:
        def is_here() -> bool:
            return self.leads and self.groups.get(group.group_id) is group

        with self.isolating_errors(group.group_id):
            found = None
            try:
                found = await self._computing.run(lambda: compute.begin() if is_here() else None)
            finally:
                if is_here():
                    self._perform(group, compute.then(found, self.clock.monotonic()))

    # writing

    def apply(self, records: Sequence[Record]) -> int:
        """Append all or none (KafkaError) and replay them as loading would. Returns the offset to wait for."""
        last_offset = self._runner.append(records)
        self.replayed_offset = last_offset
        for key, value in records:
            self.replay(memoryview(key), None if value is None else memoryview(value))
        return last_offset

    def gather(self, records: Sequence[Record], write: Gathered) -> None:
        """Append these together with the records of other requests in this turn of the loop."""
        self._runner.gather(records, write)

    # groups without members yet

    def _limit_unjoined(self, group_id: str) -> None:
        """A client can create groups by requesting ids and never joining: beyond the limit the oldest such are
        removed."""
        self._unjoined[group_id] = None
        if len(self._unjoined) > UNJOINED_GROUPS_MAX:
            oldest = next(iter(self._unjoined))
            del self._unjoined[oldest]
            if self._is_unjoined(oldest):
                self.remove_group(oldest, ClassicGroup.type)

    def _drop_unjoined(self, group_id: str) -> None:
        """Remove a group that never had a member when its last pending id expires. The log has no record of it."""
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or not group.is_unjoined:
            self._unjoined.pop(group_id, None)
        elif not group.has_pending_members and self._is_unjoined(group_id):
            self._unjoined.pop(group_id, None)
            self.remove_group(group_id, ClassicGroup.type)

    def _is_unjoined(self, group_id: str) -> bool:
        group = self.groups.get(group_id)
        return isinstance(group, ClassicGroup) and group.is_unjoined and not self.offsets.has(group_id)

    # state, as replayed from records

    def replay(self, key: memoryview, value: memoryview | None) -> None:
        record_types.replay(self, key, value)

    def new_classic_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(group_id, self.rules)

    def new_consumer_group(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id, self.consumer_rules)

    def new_share_group(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id, self.share_rules)

    @property
    def share_groups(self) -> list[ShareGroup]:
        return [group for group in self.groups.values() if isinstance(group, ShareGroup)]

    def put_group(self, group: Group) -> None:
        """Add a group, replacing one with the same id."""
        if group.group_id not in self.groups:
            self._groups_bytes += _kept_bytes_of(group.group_id)
        self.groups[group.group_id] = group

    def adopt(self, group: Group, effects: Effects) -> None:
        """Add a group, replacing one with the same id, and perform its effects."""
        self.put_group(group)
        self._perform(group, effects)

    def remove_group(self, group_id: str, kind: str) -> None:
        group = self.groups.get(group_id)
        if group is not None and group.type == kind:
            del self.groups[group_id]
            self._groups_bytes -= _kept_bytes_of(group_id)
            self._logged.pop(group_id, None)
            self._runner.forget(group_id)

    def record_offset(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """A group that commits without members is a simple group."""
        if group_id not in self.groups:
            self.put_group(self.new_classic_group(group_id))
        self.offsets.record(group_id, topic, partition, committed, position=self.replayed_offset)

    def remove_offset(self, group_id: str, topic: str, partition: int) -> None:
        self.offsets.remove(group_id, topic, partition, position=self.replayed_offset)

    # offsets inside transactions

    def record_pending(self, producer_id: int, group_id: str, entries: Sequence[Pending], *, position: int) -> None:
        if group_id not in self.groups:
            self.put_group(self.new_classic_group(group_id))
        self.offsets.record_pending(producer_id, group_id, entries, position=position)

    def replay_in_transaction(self, producer_id: int, key: memoryview, value: memoryview | None) -> None:
        group_id, topic, partition = read_offset_key(key)
        if value is not None:
            entry = (topic, partition, read_offset_value(value))
            self.record_pending(producer_id, group_id, [entry], position=self.replayed_offset)

    def commit_in_transaction(
        self, group_id: str, session: tuple[int, int], entries: Sequence[Pending], ticket: Ticket | None
    ) -> int:
        """Append pending offsets of a producer (id, epoch). Returns the offset to wait for."""
        records = [(offset_key(group_id, topic, at), offset_value(one)) for topic, at, one in entries]
        last_offset = self._runner.append_in_transaction(records, session, ticket)
        self.record_pending(session[0], group_id, entries, position=last_offset)
        return last_offset

    def transaction_ended(self, producer_id: int, *, commit: bool, offset: int) -> None:
        """A marker at this offset of the log ends the producer's transaction.

        While the shard loads, the marker may be beyond the end of the load: then it is applied after it.
        """
        if self.loading:
            self._decided_meanwhile.append((producer_id, commit, offset))
        else:
            self.replay_marker(producer_id, commit=commit, offset=offset)

    def replay_marker(self, producer_id: int, *, commit: bool, offset: int) -> None:
        if not commit:
            self.offsets.abort(producer_id)
            return
        for group_id in self.offsets.commit(producer_id, position=offset):
            if group_id not in self.groups:
                self.put_group(self.new_classic_group(group_id))

    # removing

    def delete_group(self, group: Group) -> int:
        """Delete an empty group and its offsets. Returns the offset to wait for."""
        self._runner.flush()
        self.delete_offsets(group.group_id, [(topic, at) for topic, at, _ in self.offsets.get(group.group_id) or ()])
        last_offset = self.apply(group.tombstones())
        self.remove_group(group.group_id, group.type)
        self._runner.when_committed(last_offset, lambda code: self._drop_if_empty(group.group_id))
        return last_offset

    def _drop_if_empty(self, group_id: str) -> None:
        """Kept until the deletion of a group's offsets is committed: reads wait for that."""
        if group_id not in self.groups:
            self.offsets.drop_if_empty(group_id)

    def delete_offsets(self, group_id: str, gone: Sequence[tuple[str, int]]) -> int:
        last_offset = -1
        for begin in range(0, len(gone), TOMBSTONES_PER_BATCH_MAX):
            last_offset = self.apply(tombstones(group_id, gone[begin : begin + TOMBSTONES_PER_BATCH_MAX]))
        return last_offset

    # removing many, in slices: between two slices requests are served and the shard may be unloaded

    async def expire(self, *, now_ms: int, retention_ms: int) -> int:
        """Remove expired offsets, and empty groups without offsets. Returns the number of offsets. KafkaError:
        incomplete."""
        count, left = 0, list(self.groups)
        while left and self.leads:
            # What is found in a turn is written in the same turn: a member that joins or commits in the next one keeps
            # everything that is not written by then. Gathered commits are flushed first.
            self._runner.flush()
            removal = Removal()
            for _ in range(min(GROUPS_PER_TURN_MAX, len(left))):
                if not self._find_expired(left[-1], removal, now_ms=now_ms, retention_ms=retention_ms):
                    break
                left.pop()
            self._remove(removal)
            count += removal.offsets
            await asyncio.sleep(0)
        return count

    def _find_expired(self, group_id: str, removal: Removal, *, now_ms: int, retention_ms: int) -> bool:
        """Whether all of the group was examined."""
        group, offsets = self.groups.get(group_id), self.offsets.get(group_id)
        if group is None:
            return True
        found = 0
        for topic, partition in offsets.expired(group, now_ms=now_ms, retention_ms=retention_ms) if offsets else ():
            if removal.is_full:
                return False
            removal.add_offset(group_id, topic, partition)
            found += 1
        has_offsets = offsets is not None and len(offsets) > found
        if group.may_expire and group.is_empty and not has_offsets and not self.offsets.has_pending(group_id):
            removal.add_group(group)
        return True

    async def delete_unchanged(self, found: Sequence[Found]) -> None:
        """Remove these, except those committed since they were found: a new topic may have the old name."""
        left = deque(found)
        while left and self.leads:
            self._runner.flush()
            removal = Removal()
            while left and not removal.is_full:
                group_id, topic, partition, committed = left.popleft()
                offsets = self.offsets.get(group_id)
                if offsets is not None and offsets.get(topic, partition) is committed:
                    removal.add_offset(group_id, topic, partition)
            self._remove(removal)
            await asyncio.sleep(0)

    def _remove(self, removal: Removal) -> None:
        if not removal.records:
            return
        last_offset = self.apply(removal.records)
        for group in removal.groups:
            self.remove_group(group.group_id, group.type)
        self._runner.when_committed(last_offset, lambda code: self._drop_empty(removal.groups))

    def _drop_empty(self, removed: Sequence[Group]) -> None:
        for group in removed:
            self._drop_if_empty(group.group_id)

    # beginning and end

    def loaded(self) -> None:
        self.loading = False
        for producer_id, commit, offset in self._decided_meanwhile:
            self.replay_marker(producer_id, commit=commit, offset=offset)
        self._decided_meanwhile.clear()
        self.offsets.drop_empty(besides=self.groups)
        now = self.clock.monotonic()
        for group in list(self.groups.values()):
            with self.isolating_errors(group.group_id):
                self._perform(group, group.loaded(now))

    def unload(self) -> None:
        """Another broker leads: waiting requests are answered with NOT_COORDINATOR."""
        if self.ended:
            return
        self._runner.flush()
        self.ended = True
        self._runner.stop()
        for task in self._computations:
            task.cancel()
        for group in self.groups.values():
            with self.isolating_errors(group.group_id):
                self._perform(group, group.unload())


def _kept_bytes_of(group_id: str) -> int:
    return GROUP_BYTES + size_bytes(group_id)
