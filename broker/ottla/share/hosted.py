"""A share-partition on the broker that leads it: the state machine, its log, and waiting fetches.

One write at a time: acknowledgements that arrive meanwhile go into the next one. So writes are in order, and a written
start offset is valid for everything written before it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.replica.partition import ROLE_CHANGED_BYTES, Partition
from ottla.share.core.acknowledging import Acknowledgement
from ottla.share.core.chunk import Chunk
from ottla.share.core.in_flight import Span
from ottla.share.core.messages import Persister, ShareKey
from ottla.share.core.partition import Acquired, SharePartition
from ottla.share.locks import Locks

__all__ = ["PASSING", "AcquireLimits", "HostedShare", "Waiter", "client_error"]

log = logging.getLogger("ottla.share")

PASSING = (Code.coordinator_not_available, Code.coordinator_load_in_progress, Code.not_coordinator)
FENCED = (Code.fenced_state_epoch, Code.fenced_leader_epoch, Code.not_leader_or_follower)
GONE = (*FENCED, Code.group_id_not_found, Code.unknown_topic_or_partition)


class Change(NamedTuple):
    """`done` is set for acknowledgements and releases; without it nothing waits and nothing is rolled back."""

    spans: Sequence[Span]
    done: "asyncio.Future[None] | None"


class AcquireLimits(NamedTuple):
    """How many records a member wants, from how many batches at most, and the preferred size of one span."""

    records_max: int
    batches_max: int
    batch_size: int


class Waiter:
    """A fetch that waits for `missing_bytes` more, or for any other change."""

    __slots__ = ("missing_bytes", "woken")

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.missing_bytes = 0

    def begin_reading(self) -> None:
        """Whatever is appended from now on is worth another reading: this one may have passed its partition."""
        self.woken.clear()
        self.missing_bytes = 0

    def wake(self) -> None:
        self.woken.set()

    def appended(self, size: int) -> bool:
        """Whether there may be enough for it now."""
        self.missing_bytes -= size
        if self.missing_bytes <= 0:
            self.wake()
        return self.missing_bytes <= 0


class HostedShare:
    """`is_over`: it was fenced or is unused; it accepts no more changes, but writes the pending ones."""

    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        share: SharePartition,
        *,
        persister: Persister,
        locks: Locks,
        on_end: Callable[["HostedShare"], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.is_over = False
        self._waiters: dict[Waiter, None] = {}
        self._share = share
        self._leader_epoch = partition.leader_epoch
        self._persister = persister
        self._locks = locks
        self._on_end = on_end
        self._queue: list[Change] = []
        self.writing: asyncio.Task[None] | None = None
        self._undecided_from: int | None = None  # the first record of an open transaction
        self._note_undecided()
        partition.watch(self)

    def __str__(self) -> str:
        return f"{self.partition} for {self.key.group_id}"

    @property
    def leads(self) -> bool:
        return not self.is_over and self.partition.is_leader and self.partition.leader_epoch == self._leader_epoch

    @property
    def share(self) -> SharePartition:
        """The state machine, moved to the log's current start."""
        self._share.begin_at(self.partition.log.start_offset)
        return self._share

    # waiting fetches

    def moved(self, partition: Partition, appended_bytes: int) -> None:
        """Called by the topic's partition: the high watermark moved, or another broker leads it."""
        if not self.leads:
            self.end()
            return
        if self._undecided_from not in (None, partition.last_stable_offset):
            appended_bytes = ROLE_CHANGED_BYTES  # a marker: small, but it makes many bytes readable
        self._note_undecided()
        if self.has_more:
            any(waiter.appended(appended_bytes) for waiter in self._waiters)  # the first who may have enough

    def _note_undecided(self) -> None:
        stable = self.partition.last_stable_offset
        self._undecided_from = stable if stable < self.partition.high_watermark else None

    @property
    def has_more(self) -> bool:
        """Whether there may be more: records of open transactions are for read_uncommitted groups only."""
        begin = self._share.next_offset
        return begin is not None and begin < self.partition.high_watermark

    def wake(self) -> None:
        """Wake the first waiter; it wakes the next if it leaves records. Hundreds may wait for one record."""
        for waiter in self._waiters:
            waiter.wake()
            return

    def add_waiter(self, waiter: Waiter) -> None:
        self._waiters.setdefault(waiter)

    def wake_next(self, waiter: Waiter) -> None:
        """There are records, but not enough for this waiter: wake the next one."""
        line = iter(self._waiters)
        if waiter in line and (following := next(line, None)) is not None:
            following.wake()

    def remove_waiter(self, waiter: Waiter) -> None:
        """The fetch has ended, with or without records."""
        self._waiters.pop(waiter, None)
        if self.has_more:
            self.wake()

    def end(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.partition.unwatch(self)
            for waiter in self._waiters:
                waiter.wake()
            self._on_end(self)

    # changes to write

    def acknowledge(self, member: str, acknowledgements: Sequence[Acknowledgement]) -> "asyncio.Future[None]":
        """Done when committed. Raises the error for the client, at once or through the future."""
        return self._change(self.share.acknowledge(member, acknowledgements))

    def release(self, member: str) -> None:
        """Release everything that the member has acquired."""
        if spans := self.share.release(member):
            self._change(spans).add_done_callback(_discard_outcome)

    def acquire(self, member: str, chunk: Chunk, wish: AcquireLimits, *, lock_s: float, now: float) -> list[Acquired]:
        """Acquire records of a chunk for the member; batches without records for consumers are archived."""
        share = self.share
        start = share.start
        acquired = share.acquire(
            member,
            chunk.batches(wish.batches_max),
            begin=chunk.begin,
            records_max=wish.records_max,
            batch_size=wish.batch_size,
            deadline=now + lock_s,
        )
        if acquired:
            self._locks.add(now + lock_s, self)
        if share.start != start:
            self.note()
        return acquired

    def expire(self, now: float) -> None:
        if not self.is_over and (spans := self.share.expire(now)):
            log.info("%s: locks of %d records expired", self, sum(last - first + 1 for first, last in spans))
            self.note(spans)
            self.wake()

    def note(self, spans: Sequence[Span] = ()) -> None:
        """Write these spans, or only the start, with the next write; nothing waits for it."""
        self._enqueue(Change(spans, None))

    def _change(self, spans: Sequence[Span]) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if spans:
            self._enqueue(Change(spans, done))
        else:
            done.set_result(None)
        return done

    def _enqueue(self, change: Change) -> None:
        self._queue.append(change)
        if self.writing is None:
            self.writing = asyncio.ensure_future(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._queue:
                changes, self._queue = self._queue, []
                failure = await self._write(changes)
                self._settle(changes, failure)
                self.wake()
        finally:
            self.writing = None

    async def _write(self, changes: Sequence[Change]) -> KafkaError | None:
        start, batches = self._share.to_write([span for change in changes for span in change.spans])
        try:
            await self._persister.write(
                self.key,
                state_epoch=self._share.state_epoch,
                leader_epoch=self._leader_epoch,
                start=start,
                batches=batches,
            )
        except KafkaError as error:
            log.info("%s: its state cannot be written: %s", self, error)
            if error.code in GONE:
                self.end()
            return error
        return None

    def _settle(self, changes: Sequence[Change], failure: KafkaError | None) -> None:
        awaited = [(change.spans, change.done) for change in changes if change.done is not None]
        spans = [span for each, _ in awaited for span in each]
        if failure is None:
            self._share.written(spans)
        else:
            self._share.not_written(spans)
            self._locks.check_now(self)
        for _, future in awaited:
            if future.done():
                continue
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(client_error(failure))


def _discard_outcome(done: "asyncio.Future[None]") -> None:
    """For a future without a waiter: its error has been logged."""
    if not done.cancelled():
        done.exception()


def client_error(failure: KafkaError) -> KafkaError:
    """Translates errors between brokers into codes that clients know, as Kafka does."""
    if failure.code in PASSING:
        return KafkaError(Code.coordinator_not_available, failure.message)
    if failure.code in FENCED:
        return KafkaError(Code.not_leader_or_follower, failure.message)
    return failure if failure.code in GONE else KafkaError(Code.unknown_server_error, failure.message)
