"""One partition on this broker: its log, its role, its high watermark, and its waiters.

Everything here runs on the event loop. A leader's appends become readable, and are acknowledged to acks=all, once the
high watermark has passed them; with `flush.messages`, only records on disk count.
"""

import asyncio
import uuid
from collections.abc import Callable
from typing import Protocol

from ottla.errors import Code, KafkaError
from ottla.metadata.model.state import PartitionState
from ottla.ports import Buffer
from ottla.replica.commits import Commits, OnCommit
from ottla.replica.core.isr import EpochOf, LeaderView
from ottla.replica.serial_queue import PendingBatches
from ottla.replica.stored import Stored
from ottla.storage.core.verification import Ticket
from ottla.storage.log.log import Appended, Log
from ottla.system import System
from ottla.wire.batch import Batch
from ottla.wire.markers import Marker, marker_batch

__all__ = ["ROLE_CHANGED_BYTES", "Copy", "Partition", "Watcher"]

ROLE_CHANGED_BYTES = 1 << 62


class Watcher(Protocol):
    """A waiting fetch."""

    def moved(self, partition: "Partition", appended_bytes: int) -> None:
        """The readable end moved by about `appended_bytes`, or the role changed (ROLE_CHANGED_BYTES)."""


class Copy(Protocol):
    """The leader's side of a follower's copy."""

    def appended(self) -> None: ...
    def watermark_moved(self) -> None:
        """The high watermark or the log's start moved."""

    def ended(self, code: Code) -> None:
        """This broker no longer leads the partition, or leads it in another epoch."""


class Partition(Stored):
    def __init__(
        self,
        topic: str,
        index: int,
        log: Log,
        *,
        topic_id: uuid.UUID,
        system: System,
        node_id: int,
        high_watermark: int,
        on_disk_error: Callable[["Partition", OSError], None],
        epoch_of: EpochOf = lambda broker_id: None,
        lag_max_s: float = 30.0,
    ) -> None:
        super().__init__(topic, index, log, system=system)
        self.topic_id = topic_id
        self.leader_epoch = -1
        self.leader_id = -1
        self.partition_epoch = -1
        self.pending_batches = PendingBatches()
        self.view: LeaderView | None = None  # None: not the leader
        self._watchers: dict[Watcher, None] = {}
        self._copies: dict[int, Copy] = {}  # by the follower's broker id
        self._on_flushed: Callable[[Partition], None] | None = None
        self._node_id = node_id
        self._epoch_of = epoch_of
        self._lost: tuple[int, ...] = ()
        self._lag_max_s = lag_max_s
        self._follower_watermark = max(min(high_watermark, log.end_offset), log.start_offset)
        self._commits = Commits()
        self._deletions = Commits()  # waiters for deletions on all followers
        self._on_disk_error = on_disk_error
        self._unseen_bytes = 0

    # role

    def become(self, state: PartitionState, *, isr_size_min: int) -> None:
        """Become leader or follower, as the metadata image says."""
        self.leader_id = state.leader
        self._lost = state.lost
        if state.leader != self._node_id:
            if self.view is not None or state.leader_epoch != self.leader_epoch:
                self._follow(state)
        elif self.view is None or state.leader_epoch != self.leader_epoch:
            self._lead(state, isr_size_min)
        else:
            self.view.require_isr_size(isr_size_min)
            if state.partition_epoch > self.partition_epoch:
                self.isr_committed(state)
            else:
                self.refresh()
        self.partition_epoch = max(self.partition_epoch, state.partition_epoch)

    def _lead(self, state: PartitionState, isr_size_min: int) -> None:
        self._end_role(Code.fenced_leader_epoch)
        end = self.log.end_offset
        self.leader_epoch = state.leader_epoch
        self.log.epochs.assign(state.leader_epoch, end)
        self.view = LeaderView(
            node_id=self._node_id,
            replicas=state.replicas,
            isr=state.isr,
            isr_size_min=isr_size_min,
            high_watermark=self.high_watermark,
            end=end,
            now=self._system.clock.monotonic(),
            lag_max_s=self._lag_max_s,
            epoch_of=self._epoch_of_replica,
        )
        self._role_changed()

    def _epoch_of_replica(self, broker_id: int) -> int | None:
        """None for a replica in a failed log dir, even if its broker is alive."""
        return None if broker_id in self._lost else self._epoch_of(broker_id)

    def _follow(self, state: PartitionState) -> None:
        self.leader_epoch = state.leader_epoch
        # A leader that wrote nothing leaves an empty epoch; the log's last epoch must be that of its last record.
        self.log.epochs.truncate_end(self.log.end_offset)
        self.stop()

    def stop(self) -> None:
        """This broker no longer leads or hosts the partition: all waiters are refused."""
        self._follower_watermark = self.high_watermark
        self.view = None
        self._end_role(Code.not_leader_or_follower)
        self._role_changed()

    def _end_role(self, code: Code) -> None:
        self._commits.fail(Code.not_leader_or_follower)
        self._deletions.fail(Code.not_leader_or_follower)
        copies, self._copies = self._copies, {}
        for copy in copies.values():
            copy.ended(code)

    def _role_changed(self) -> None:
        for watcher in list(self._watchers):
            watcher.moved(self, ROLE_CHANGED_BYTES)

    # waiters

    def watch(self, watcher: Watcher) -> None:
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def add_copy(self, follower: int, copy: Copy) -> None:
        """Notify this copy of appends; it replaces an older copy of the same follower."""
        replaced = self._copies.get(follower)
        self._copies[follower] = copy
        if replaced is not None:
            replaced.ended(Code.fenced_leader_epoch)

    def remove_copy(self, follower: int, copy: Copy) -> None:
        """Remove it unless another one has replaced it."""
        if self._copies.get(follower) is copy:
            del self._copies[follower]

    def notify_flushed(self, callback: "Callable[[Partition], None]") -> None:
        """Call this after every flush, also after a failed one. For a follower."""
        self._on_flushed = callback

    def stop_notifying_flushed(self, callback: "Callable[[Partition], None]") -> None:
        if self._on_flushed == callback:
            self._on_flushed = None

    # leadership

    @property
    def is_leader(self) -> bool:
        return self.view is not None

    def require_leader(self, client_epoch: int = -1) -> None:
        """Raise Kafka's error when this broker does not lead, or the client's epoch differs."""
        self.require_epoch(client_epoch)
        if self.view is None:
            raise KafkaError(Code.not_leader_or_follower, f"{self} is led by broker {self.leader_id}")

    def require_epoch(self, client_epoch: int) -> None:
        if client_epoch >= 0 and client_epoch != self.leader_epoch:
            fenced = client_epoch < self.leader_epoch
            raise KafkaError(Code.fenced_leader_epoch if fenced else Code.unknown_leader_epoch)

    # offsets

    @property
    def high_watermark(self) -> int:
        return self.view.high_watermark if self.view is not None else self._follower_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.stable_below(self.high_watermark)

    def follow_watermark(self, high_watermark: int) -> None:
        """Adopt the leader's high watermark, up to the end of this log. It never decreases."""
        known = min(high_watermark, self.log.end_offset)
        if self.view is None and known > self._follower_watermark:
            self._follower_watermark = known
            self._watermark_moved()

    def log_was_cut(self) -> None:
        """Called after a truncation of a follower's log."""
        self._follower_watermark = max(min(self._follower_watermark, self.log.end_offset), self.log.start_offset)

    @property
    def low_watermark(self) -> int:
        """The lowest log start of all replicas whose brokers are alive."""
        start = self.log.start_offset
        return start if self.view is None else min(start, self.view.low_watermark)

    # in-sync replicas

    def acked(self, replica: int, *, end: int, start: int, broker_epoch: int) -> None:
        """A follower has acknowledged everything below `end`."""
        now = self._system.clock.monotonic()
        if self.view is not None and self.view.acked(replica, end=end, start=start, broker_epoch=broker_epoch, now=now):
            self._watermark_moved()
        if self._deletions:
            self._deletions.resolve(self.low_watermark)

    def isr_committed(self, state: PartitionState) -> None:
        """The controller committed this state. Ignored if it is older than the current one."""
        if self.view is None or state.leader_epoch != self.leader_epoch or state.partition_epoch < self.partition_epoch:
            return
        self.partition_epoch = state.partition_epoch
        self._lost = state.lost
        if self.view.replace(replicas=state.replicas, isr=state.isr, now=self._system.clock.monotonic()):
            self._watermark_moved()

    def isr_refused(self) -> None:
        if self.view is not None and self.view.withdraw(now=self._system.clock.monotonic()):
            self._watermark_moved()

    def refresh(self) -> None:
        """Time has passed, or the set of live brokers changed."""
        if self.view is not None and self.view.refresh(self._system.clock.monotonic()):
            self._watermark_moved()
        if self._deletions:
            self._deletions.resolve(self.low_watermark)

    # writing

    def append(
        self, batch: Batch, *, acks_all: bool, from_client: bool = True, ticket: Ticket | None = None
    ) -> Appended:
        """Append as the leader, all of the batch or nothing (KafkaError)."""
        view = self.view
        if view is None:
            raise KafkaError(Code.not_leader_or_follower, f"{self} is led by broker {self.leader_id}")
        if acks_all and not view.enough_in_sync:
            raise KafkaError(
                Code.not_enough_replicas,
                f"{self} has {len(view.isr)} replicas in sync, min.insync.replicas asks for {view.isr_size_min}",
            )
        try:
            appended = self.log.append(batch, leader_epoch=self.leader_epoch, from_client=from_client, ticket=ticket)
        except OSError as error:
            raise self.disk_failed(error) from error
        if appended.duplicate:
            return appended
        self._unseen_bytes += batch.size
        if appended.must_flush:
            self.flush_soon()
        elif self._flush_task is None and view.advance(appended.last_offset + 1):
            self._watermark_moved()
        if self._copies:
            for copy in self._copies.values():
                copy.appended()
        return appended

    def write_marker(self, marker: Marker) -> Appended:
        """End a producer's transaction in this partition, as its coordinator decided. Idempotent.

        KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED if a newer producer epoch or coordinator has
        written here; other errors may be retried.
        """
        batch = marker_batch(marker, now_ms=self._system.clock.wall_ms())
        return self.append(batch, acks_all=True, from_client=False)

    def append_copied(self, data: Buffer) -> None:
        """Append the leader's batches as a follower, all or nothing (KafkaError)."""
        try:
            self.log.append_replicated(data, leader_epoch=self.leader_epoch)
        except OSError as error:
            raise self.disk_failed(error) from error
        self._unseen_bytes += len(data)
        if self.log.end_offset - self.log.flushed_offset >= self.log.settings.flush_messages:
            self.flush_soon()

    def committed(self, last_offset: int) -> "asyncio.Future[None] | None":
        """None when the high watermark has passed the offset, otherwise a future for that."""
        return None if self.high_watermark > last_offset else self._commits.wait(last_offset)

    def when_committed(self, last_offset: int, on_commit: OnCommit) -> bool:
        """False when the high watermark has passed the offset; otherwise `on_commit` is called at that moment."""
        if self.high_watermark > last_offset:
            return False
        self._commits.add(last_offset, on_commit)
        return True

    def _watermark_moved(self) -> None:
        high_watermark = self.high_watermark
        self.log.producers.replicated_to(high_watermark)
        if self._commits:
            self._commits.resolve(high_watermark)
        appended, self._unseen_bytes = self._unseen_bytes, 0
        if self._watchers:
            for watcher in list(self._watchers):
                watcher.moved(self, appended)
        if self._copies:
            self._notify_copies()

    def _notify_copies(self) -> None:
        for copy in self._copies.values():
            copy.watermark_moved()

    # the disk

    def _take_offline(self, error: OSError) -> None:
        self._on_disk_error(self, error)

    def _flushed(self, end: int) -> None:
        if self.view is not None and self.view.advance(end):
            self._watermark_moved()

    def _flush_ended(self, *, failed: bool) -> None:
        if failed:
            self._commits.fail(Code.kafka_storage_error)
        if self._on_flushed is not None:
            self._on_flushed(self)

    # deleting

    def start_moved(self) -> None:
        self._notify_copies()

    def deleted_everywhere(self, offset: int) -> "asyncio.Future[None] | None":
        """None when no live replica has anything below the offset, otherwise a future for that."""
        return None if self.low_watermark >= offset else self._deletions.wait(offset - 1)
