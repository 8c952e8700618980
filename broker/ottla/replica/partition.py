"""One partition on this broker: its log, its role, its high watermark, and who waits for it to move.

Everything here runs on the event loop. A leader's appends become visible, and are acknowledged to acks=all, once the
high watermark has passed them; for a log that asks for it (`flush.messages`), only what is on the disk counts.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Protocol

from ottla.errors import Code, KafkaError
from ottla.metadata.state import PartitionState
from ottla.replica.isr import LeaderView
from ottla.storage.log import Appended, Log
from ottla.system import Buffer, System
from ottla.wire.batch import Batch

__all__ = ["Partition", "Watcher"]


class Watcher(Protocol):
    def moved(self, partition: "Partition", appended_bytes: int) -> None:
        """The partition's readable end moved by about so many bytes, or its role changed (then a huge number)."""


ROLE_CHANGED_BYTES = 1 << 62


class Partition:
    def __init__(
        self,
        topic: str,
        index: int,
        log: Log,
        *,
        system: System,
        node_id: int,
        high_watermark: int,
        on_disk_error: Callable[["Partition", OSError], None],
    ) -> None:
        self.topic = topic
        self.index = index
        self.log = log
        self.leader_epoch = -1
        self.leader_id = -1
        self.preparation = asyncio.Lock()
        self.preparing = 0
        """Batches that are opened before they are appended; while there are any, all others queue behind them."""
        self.watchers: dict[Watcher, None] = {}
        self._system = system
        self._node_id = node_id
        self._follower_watermark = max(min(high_watermark, log.end_offset), log.start_offset)
        self._view: LeaderView | None = None
        self._commits: list[tuple[int, asyncio.Future[None]]] = []
        self._flush_task: asyncio.Task[None] | None = None
        self._sealing: asyncio.Future[int] | None = None
        self._on_disk_error = on_disk_error
        self._unseen_bytes = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    # role

    def become(self, state: PartitionState, *, isr_size_min: int) -> None:
        """Take the role that the metadata image gives this broker."""
        self.leader_id = state.leader
        if state.leader != self._node_id:
            self._follow(state)
        elif self._view is None or state.leader_epoch != self.leader_epoch:
            self._lead(state, isr_size_min)
        else:
            self._view.isr_size_min = isr_size_min
            if self._view.replace_isr(state.isr):
                self._watermark_moved()

    def _lead(self, state: PartitionState, isr_size_min: int) -> None:
        end = self.log.end_offset
        self.leader_epoch = state.leader_epoch
        self.log.epochs.assign(state.leader_epoch, end)
        self._view = LeaderView(
            node_id=self._node_id,
            isr=state.isr,
            isr_size_min=isr_size_min,
            high_watermark=self.high_watermark,
            end=end,
        )
        self._view.advance(self._node_id, end)
        self._role_changed()

    def _follow(self, state: PartitionState) -> None:
        self._follower_watermark = self.high_watermark
        self._view = None
        self.leader_epoch = state.leader_epoch
        self._fail_commits(Code.not_leader_or_follower)
        self._role_changed()

    def stop(self) -> None:
        """The partition leaves this broker: nobody waits for it any longer."""
        self._view = None
        self._fail_commits(Code.not_leader_or_follower)
        self._role_changed()

    def _role_changed(self) -> None:
        for watcher in list(self.watchers):
            watcher.moved(self, ROLE_CHANGED_BYTES)

    @property
    def is_leader(self) -> bool:
        return self._view is not None

    def require_leader(self, client_epoch: int = -1) -> None:
        """Raise what Kafka answers when this broker does not lead, or client and broker disagree on the epoch."""
        if client_epoch >= 0 and client_epoch != self.leader_epoch:
            fenced = client_epoch < self.leader_epoch
            raise KafkaError(Code.fenced_leader_epoch if fenced else Code.unknown_leader_epoch)
        if self._view is None:
            raise KafkaError(Code.not_leader_or_follower, f"{self} is led by broker {self.leader_id}")

    # offsets

    @property
    def high_watermark(self) -> int:
        return self._view.high_watermark if self._view is not None else self._follower_watermark

    @property
    def last_stable_offset(self) -> int:
        return self.log.producers.last_stable_offset(self.high_watermark)

    # writing

    def append(self, batch: Batch, *, acks_all: bool) -> Appended:
        """Append as the leader. Nothing of the batch is written when this raises."""
        view = self._view
        if view is None:
            raise KafkaError(Code.not_leader_or_follower, f"{self} is led by broker {self.leader_id}")
        if acks_all and not view.enough_in_sync:
            raise KafkaError(
                Code.not_enough_replicas,
                f"{self} has {len(view.isr)} replicas in sync, min.insync.replicas asks for {view.isr_size_min}",
            )
        try:
            appended = self.log.append(batch, leader_epoch=self.leader_epoch)
        except OSError as error:
            self._on_disk_error(self, error)
            raise KafkaError(Code.kafka_storage_error, f"{self}: {error}") from error
        if appended.duplicate:
            return appended
        self._unseen_bytes += batch.size
        if appended.must_flush:
            self.flush_soon()
        elif self._flush_task is None and view.advance(self._node_id, appended.last_offset + 1):
            self._watermark_moved()
        return appended

    def in_line(self, preparing: Coroutine[None, None, None]) -> "asyncio.Task[None]":
        """Start the preparation of a batch; it keeps its place even when its client leaves."""
        self.preparing += 1
        task = asyncio.get_running_loop().create_task(preparing)
        task.add_done_callback(self._prepared)
        return task

    def _prepared(self, _: "asyncio.Task[None]") -> None:
        self.preparing -= 1

    def committed(self, last_offset: int) -> "asyncio.Future[None] | None":
        """None when the high watermark has passed the offset, else a future for that moment."""
        if self.high_watermark > last_offset:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commits.append((last_offset, future))
        return future

    def _watermark_moved(self) -> None:
        if self._commits:
            self._resolve_commits()
        appended, self._unseen_bytes = self._unseen_bytes, 0
        if self.watchers:
            for watcher in list(self.watchers):
                watcher.moved(self, appended)

    def _resolve_commits(self) -> None:
        watermark = self.high_watermark
        still_waiting = []
        for last_offset, future in self._commits:
            if last_offset >= watermark:
                still_waiting.append((last_offset, future))
            elif not future.done():
                future.set_result(None)
        self._commits = still_waiting

    def _fail_commits(self, code: Code) -> None:
        commits, self._commits = self._commits, []
        for _, future in commits:
            if not future.done():
                future.set_exception(KafkaError(code))

    # durability

    def flush_soon(self) -> None:
        """Bring the log to the disk; appends that arrive meanwhile share the next round."""
        if self._flush_task is None:
            self._flush_task = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        try:
            if self._sealing is not None:
                await asyncio.wait([self._sealing])
            while self.log.flushed_offset < self.log.end_offset:
                flushed = await self._system.threads.run(self.log.flush)
                if self._view is not None and self._view.advance(self._node_id, flushed):
                    self._watermark_moved()
        except OSError as error:
            self._on_disk_error(self, error)
            self._fail_commits(Code.kafka_storage_error)
        finally:
            self._flush_task = None

    async def flush_sealed(self) -> None:
        """Bring the segments behind the active one to the disk, so that a restart after a crash need not scan them."""
        if self._flush_task is not None or self.log.flushed_offset >= self.log.active.base_offset:
            return
        self._sealing = self._system.threads.run(self.log.flush_sealed)
        try:
            await self._sealing
        except OSError as error:
            self._on_disk_error(self, error)
        finally:
            self._sealing = None

    async def delete_before(self, offset: int) -> None:
        """DeleteRecords: the log begins at `offset` from now on."""
        try:
            self.log.advance_start(offset)
        except OSError as error:
            self._on_disk_error(self, error)
            raise KafkaError(Code.kafka_storage_error, f"{self}: {error}") from error

    # reading

    def read(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Buffer | None:
        """Whole batches from `start`, or None when they must be read with `read_cold`."""
        try:
            return self.log.read(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)
        except OSError as error:
            self._on_disk_error(self, error)
            raise KafkaError(Code.kafka_storage_error, f"{self}: {error}") from error

    async def read_cold(self, *, start: int, end: int, size_bytes_max: int, whole_first: bool) -> Buffer:
        def read() -> Buffer:
            return self.log.read_cold(start=start, end=end, size_bytes_max=size_bytes_max, whole_first=whole_first)

        try:
            return await self._system.threads.run(read)
        except OSError as error:
            self._on_disk_error(self, error)
            raise KafkaError(Code.kafka_storage_error, f"{self}: {error}") from error
