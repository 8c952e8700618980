"""The groups and offsets of one partition of the offsets topic, for as long as this broker leads it in one epoch."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import Gathered, WriteRules
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import ClassicGroup, Rules
from ottla.group.classic.member import Join
from ottla.group.consumer.group import ConsumerGroup, ConsumerRules
from ottla.group.contract import records as record_types
from ottla.group.contract.effects import Effects, Record, Reply, Wake, Write
from ottla.group.contract.group import Group
from ottla.group.offsets.committed import GroupOffsets
from ottla.group.offsets.pending import Pending, PendingOffsets
from ottla.group.offsets.records import (
    CommittedOffset,
    offset_key,
    offset_value,
    read_offset_key,
    read_offset_value,
)
from ottla.group.share.group import ShareGroup, ShareRules
from ottla.group.timers import Timers
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.storage.core.verification import Ticket

__all__ = ["Found", "Shard"]

log = logging.getLogger("ottla.group")

TOMBSTONES_PER_BATCH_MAX = 500  # then others have a turn of the loop
TOMBSTONES_BYTES_MAX = 256 * 1024
GROUPS_PER_TURN_MAX = 200  # that are looked at
UNJOINED_GROUPS_MAX = 500
Found: TypeAlias = tuple[str, str, int, CommittedOffset]
"""Group, topic, partition, and what is committed."""


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
    ) -> None:
        super().__init__(partition, clock=clock, write_rules=write_rules)
        self.rules = rules
        self.consumer_rules = consumer_rules(self)
        self.share_rules = share_rules(self)
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, GroupOffsets] = {}
        self.pending = PendingOffsets()
        self._decided_meanwhile: list[tuple[int, bool, int]] = []
        self._founded: dict[str, None] = {}  # groups that may not have had a member yet, the oldest first
        self._told: dict[str, str] = {}  # group id → the state that the log tells of last
        self._timers = Timers(clock, self._time_is_up)

    @property
    def count(self) -> int:
        return len(self.groups)

    # effects of groups

    def perform(self, group: Group, effects: Effects) -> None:
        self._tell_of(group)
        for effect in effects:
            match effect:
                case Reply():
                    if not effect.to.done():
                        effect.to.set_result(effect.answer)
                case Wake():
                    self._timers.wake(group.group_id, effect.at)
                case Write():
                    self._write_for(group, effect)

    def _write_for(self, group: Group, write: Write) -> None:
        def told(code: Code) -> None:
            if not self.ended:
                self.perform(group, write.then(code, self.clock.monotonic()))

        try:
            last_offset = self.write(write.records)
        except KafkaError as error:
            told(error.code)
        else:
            if write.in_force is not None:
                write.in_force(last_offset)
            self.when_committed(last_offset, told)

    def _tell_of(self, group: Group) -> None:
        before, state = self._told.get(group.group_id, "Empty"), group.state
        if state != before:
            self._told[group.group_id] = state
            log.info("group %s was %s, is %s: %s", group.group_id, before, state, group.story)

    def _time_is_up(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group is not None and self.leads:
            self.perform(group, group.tick(self.clock.monotonic()))
            self._drop_unjoined(group_id)

    # writing

    def write(self, records: Sequence[Record]) -> int:
        """Append all of them or none (KafkaError); the offset to wait for."""
        return self._writer.append(records)

    def apply(self, records: Sequence[Record]) -> int:
        """The same, and put them in force here as loading would."""
        last_offset = self.write(records)
        self.replayed_offset = last_offset
        for key, value in records:
            self.replay(memoryview(key), None if value is None else memoryview(value))
        return last_offset

    def gather(self, records: Sequence[Record], write: Gathered) -> None:
        self._writer.gather(records, write)

    def when_committed(self, offset: int, told: Callable[[Code], None]) -> None:
        self._writer.when_committed(offset, told)

    # joining

    def join(self, group_id: str, request: Join, to: Any) -> None:
        """A new member may found a group; one that was here before expects its own to exist (KafkaError)."""
        group = self.groups.get(group_id)
        if group is None:
            if request.member_id:
                raise KafkaError(Code.unknown_member_id)
            group = self.groups[group_id] = self.new_classic_group(group_id)
            self._make_room_for_unjoined(group_id)
        self.perform(group, group.join(request, to, self.clock.monotonic()))
        self._drop_unjoined(group_id)

    def _make_room_for_unjoined(self, group_id: str) -> None:
        """Anyone can found groups by asking for ids and never coming back: the oldest of those go for new ones."""
        self._founded[group_id] = None
        if len(self._founded) > UNJOINED_GROUPS_MAX:
            oldest = next(iter(self._founded))
            del self._founded[oldest]
            if self._is_unjoined(oldest):
                self.forget_group(oldest, ClassicGroup.type)

    def _drop_unjoined(self, group_id: str) -> None:
        """A group goes with the last id that was given out in vain. There is no record of it."""
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or not group.is_unjoined:
            self._founded.pop(group_id, None)
        elif not group.pending and self._is_unjoined(group_id):
            self._founded.pop(group_id, None)
            self.forget_group(group_id, ClassicGroup.type)

    def _is_unjoined(self, group_id: str) -> bool:
        group = self.groups.get(group_id)
        has_offsets = group_id in self.offsets or self.pending.has_group(group_id)
        return isinstance(group, ClassicGroup) and group.is_unjoined and not has_offsets

    # state, as records say

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

    def adopt(self, group: Group, effects: Effects) -> None:
        """A group comes in, in the place of one with the same id."""
        self.groups[group.group_id] = group
        self.perform(group, effects)

    def forget_group(self, group_id: str, kind: str) -> None:
        group = self.groups.get(group_id)
        if group is not None and group.type == kind:
            del self.groups[group_id]
            self._told.pop(group_id, None)
            self._timers.forget(group_id)

    def keep_offset(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        """A group that commits without having members is a simple one."""
        self.pending.supersede(group_id, topic, partition, before=self.replayed_offset)
        self._keep_offset(group_id, topic, partition, committed)

    def _keep_offset(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        if group_id not in self.groups:
            self.groups[group_id] = self.new_classic_group(group_id)
        offsets = self.offsets.get(group_id)
        if offsets is None:
            offsets = self.offsets[group_id] = GroupOffsets()
        offsets.keep(topic, partition, committed)
        offsets.written = self.replayed_offset

    def forget_offset(self, group_id: str, topic: str, partition: int) -> None:
        offsets = self.offsets.get(group_id)
        if offsets is not None:
            offsets.forget(topic, partition)
            offsets.written = self.replayed_offset

    # offsets inside transactions

    def keep_pending(self, producer_id: int, group_id: str, entries: Sequence[Pending], *, position: int) -> None:
        """`position`: of the record in the log."""
        if group_id not in self.groups:
            self.groups[group_id] = self.new_classic_group(group_id)
        self.pending.keep(producer_id, group_id, entries, position=position)

    def replay_in_transaction(self, producer_id: int, key: memoryview, value: memoryview | None) -> None:
        group_id, topic, partition = read_offset_key(key)
        if value is not None:
            entry = (topic, partition, read_offset_value(value))
            self.keep_pending(producer_id, group_id, [entry], position=self.replayed_offset)

    def commit_in_transaction(
        self, group_id: str, session: tuple[int, int], entries: Sequence[Pending], ticket: Ticket | None
    ) -> int:
        """Append offsets for a producer (id, epoch) whose transaction has yet to end; the offset to wait for."""
        records = [(offset_key(group_id, topic, at), offset_value(one)) for topic, at, one in entries]
        last_offset = self._writer.append_in_transaction(records, session, ticket)
        self.keep_pending(session[0], group_id, entries, position=last_offset)
        return last_offset

    def decided(self, producer_id: int, *, commit: bool, offset: int) -> None:
        """The end of a producer's transaction, which stands in the log at this offset.

        While the log is being read it may stand behind the end up to which that is done: then its turn comes later.
        """
        if self.loading:
            self._decided_meanwhile.append((producer_id, commit, offset))
        else:
            self.replay_decided(producer_id, commit=commit, offset=offset)

    def replay_decided(self, producer_id: int, *, commit: bool, offset: int) -> None:
        if not commit:
            self.pending.abort(producer_id)
            return
        for group_id, entries in self.pending.commit(producer_id).items():
            self.replayed_offset = offset
            for topic, partition, committed in entries:
                self._keep_offset(group_id, topic, partition, committed)

    # removing

    def delete_group(self, group: Group) -> int:
        """An empty group and its offsets go; the offset to wait for."""
        self._writer.flush()
        self.delete_offsets(group.group_id, [(topic, at) for topic, at, _ in self.offsets.get(group.group_id, ())])
        last_offset = self.apply(group.tombstones())
        self.forget_group(group.group_id, group.type)
        self.when_committed(last_offset, lambda code: self._drop_if_empty(group.group_id))
        return last_offset

    def _drop_if_empty(self, group_id: str) -> None:
        """Until the end of a group's offsets is committed, readers must wait for it."""
        if group_id not in self.groups and not self.offsets.get(group_id):
            self.offsets.pop(group_id, None)

    def delete_offsets(self, group_id: str, gone: Sequence[tuple[str, int]]) -> int:
        last_offset = -1
        for begin in range(0, len(gone), TOMBSTONES_PER_BATCH_MAX):
            last_offset = self.apply(_tombstones(group_id, gone[begin : begin + TOMBSTONES_PER_BATCH_MAX]))
        return last_offset

    # removing much, in slices: between two of them requests are served and the shard may be unloaded

    async def expire(self, *, now_ms: int, retention_ms: int) -> int:
        """Offsets whose time is over go, and empty groups that have none; how many offsets. KafkaError: some stay."""
        count, left = 0, list(self.groups)
        while left and self.leads:
            # Whatever is found in this turn is also written in it: a member that comes in the next one, or its
            # commit, keeps what is not written by then. A commit that is on its way counts.
            self._writer.flush()
            removal = Removal()
            for _ in range(min(GROUPS_PER_TURN_MAX, len(left))):
                if not self._find_expired(left[-1], removal, now_ms=now_ms, retention_ms=retention_ms):
                    break
                left.pop()
            self._remove(removal)
            count += removal.offsets
            await asyncio.sleep(0)
        return count

    def _find_expired(self, group_id: str, removal: "Removal", *, now_ms: int, retention_ms: int) -> bool:
        """Whether that is all there is of this group."""
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
        if group.may_expire and group.is_empty and not has_offsets and not self.pending.has_group(group_id):
            removal.add_group(group)
        return True

    def offsets_of(self, topics: set[str]) -> list[Found]:
        """All that is committed for these topics."""
        return [
            (group_id, topic, partition, committed)
            for group_id, offsets in self.offsets.items()
            if not topics.isdisjoint(offsets.by_topic)
            for topic, partition, committed in offsets
            if topic in topics
        ]

    async def delete_unchanged(self, found: Sequence[Found]) -> None:
        """As `offsets_of` found them, but for those committed anew: a new topic may have the name of one deleted."""
        left = deque(found)
        while left and self.leads:
            self._writer.flush()
            removal = Removal()
            while left and not removal.is_full:
                group_id, topic, partition, committed = left.popleft()
                offsets = self.offsets.get(group_id)
                if offsets is not None and offsets.get(topic, partition) is committed:
                    removal.add_offset(group_id, topic, partition)
            self._remove(removal)
            await asyncio.sleep(0)

    def _remove(self, removal: "Removal") -> None:
        if not removal.records:
            return
        last_offset = self.apply(removal.records)
        for group in removal.groups:
            self.forget_group(group.group_id, group.type)
        self.when_committed(last_offset, lambda code: self._drop_empty(removal.groups))

    def _drop_empty(self, removed: Sequence[Group]) -> None:
        for group in removed:
            self._drop_if_empty(group.group_id)

    # beginning and end

    def loaded(self) -> None:
        self.loading = False
        for producer_id, commit, offset in self._decided_meanwhile:
            self.replay_decided(producer_id, commit=commit, offset=offset)
        self._decided_meanwhile.clear()
        now = self.clock.monotonic()
        for group in list(self.groups.values()):
            self.perform(group, group.loaded(now))

    def unload(self) -> None:
        """Another broker leads: whoever waits here must look for it."""
        if self.ended:
            return
        self._writer.flush()
        self.ended = True
        self._timers.stop()
        for group in self.groups.values():
            self.perform(group, group.unload())


class Removal:
    """What goes in one turn of the loop, by one batch."""

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


def _tombstones(group_id: str, gone: Sequence[tuple[str, int]]) -> list[tuple[bytes, Any]]:
    return [(offset_key(group_id, topic, partition), None) for topic, partition in gone]
