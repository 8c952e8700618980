"""The groups and offsets of one partition of the offsets topic, for as long as this broker leads it in one epoch."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import Gathered, WriteRules
from ottla.errors import Code, KafkaError
from ottla.group import records as record_types
from ottla.group.classic import ClassicGroup, Rules
from ottla.group.consumer_group import ConsumerGroup, ConsumerRules
from ottla.group.effects import Effects, Record, Reply, Wake, Write
from ottla.group.group import Group
from ottla.group.offset_records import (
    CommittedOffset,
    offset_key,
    offset_value,
    read_offset_key,
    read_offset_value,
)
from ottla.group.offsets import GroupOffsets
from ottla.group.pending_offsets import Pending, PendingOffsets
from ottla.group.share_group import ShareGroup, ShareRules
from ottla.group.timers import Timers
from ottla.replica.partition import Partition
from ottla.storage.verification import Ticket
from ottla.system import Clock

__all__ = ["Shard"]

log = logging.getLogger("ottla.group")

TOMBSTONES_PER_BATCH_MAX = 1000


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

    def group_to_join(self, group_id: str, *, is_new_member: bool) -> Group:
        """A new member may found a group; one that was here before expects its own to exist."""
        group = self.groups.get(group_id)
        if group is not None:
            return group
        if not is_new_member:
            raise KafkaError(Code.unknown_member_id)
        made = self.groups[group_id] = self.new_classic_group(group_id)
        return made

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

    def expire(self, *, now_ms: int, retention_ms: int) -> int:
        """Offsets whose time is over go, and empty groups that have none; how many offsets."""
        count = 0
        for group in list(self.groups.values()):
            offsets = self.offsets.get(group.group_id)
            gone = offsets.expired(group, now_ms=now_ms, retention_ms=retention_ms) if offsets else []
            if gone:
                self.delete_offsets(group.group_id, gone)
                count += len(gone)
            if group.may_expire and group.is_empty and not offsets and not self.pending.has_group(group.group_id):
                self.delete_group(group)
        return count

    def topics_deleted(self, topics: set[str]) -> None:
        for group_id, offsets in list(self.offsets.items()):
            if gone := [(topic, partition) for topic, partition, _ in offsets if topic in topics]:
                self.delete_offsets(group_id, gone)

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


def _tombstones(group_id: str, gone: Sequence[tuple[str, int]]) -> list[tuple[bytes, Any]]:
    return [(offset_key(group_id, topic, partition), None) for topic, partition in gone]
