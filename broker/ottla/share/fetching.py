"""The fetching part of ShareFetch: waits until enough bytes are available, then acquires records by partition."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer, Clock
from ottla.share.core.chunk import Chunk
from ottla.share.core.partition import Acquired
from ottla.share.core.sessions import ShareSession, TopicIdPartition
from ottla.share.host import ShareHost
from ottla.share.hosted import PASSING, AcquireLimits, HostedShare, Waiter, client_error

__all__ = ["Delivered", "Limits", "ShareFetching"]

PARTITION_BYTES_MAX = 1024 * 1024  # per read of one partition: the request has no such limit
BATCHES_MAX = 500  # of one answer, 20 µs each: all are acquired in one turn of the loop; a client asks for 500 records
FAILURES_MAX = 500  # of one answer; others get their turn in the next one
RETRY_SECONDS = 0.2  # before a failed load is retried
LATER = (*PASSING, Code.group_id_not_found)  # the state does not exist yet: the fetch waits as if there were no records


class Limits(NamedTuple):
    wait_s: float
    size_bytes_min: int
    size_bytes_max: int
    records_max: int
    batch_size: int


@dataclass(slots=True)
class Delivered:
    """The result of one partition."""

    records: Buffer = b""
    acquired: tuple[Acquired, ...] = ()
    error: KafkaError | None = None


class Read(NamedTuple):
    wanted: TopicIdPartition
    hosted: HostedShare
    chunk: Chunk


class Pace(Protocol):
    """Very many partitions are read in slices."""

    @property
    def is_due(self) -> bool: ...
    async def rest(self) -> None: ...


class ShareFetching:
    """One request. `run` returns acquired records and errors by partition, and advances the session's order.

    `refused`: why its client may not read a topic, if so.
    """

    def __init__(
        self,
        host: ShareHost,
        session: ShareSession,
        limits: Limits,
        *,
        clock: Clock,
        pace: Pace,
        refused: Callable[[bytes], KafkaError | None] | None = None,
    ) -> None:
        self._host = host
        self._session = session
        self._limits = limits
        self._clock = clock
        self._pace = pace
        self._refused = refused
        self._settings = host.settings_of(session.group_id)
        self._waiter = Waiter()
        self._watched: dict[HostedShare, None] = {}
        self._failures: dict[TopicIdPartition, Delivered] = {}
        self._loads: dict[TopicIdPartition, asyncio.Task[HostedShare]] = {}
        self._unloaded = False

    async def run(self) -> dict[TopicIdPartition, Delivered]:
        until = self._clock.monotonic() + self._limits.wait_s
        try:
            while True:
                self._waiter.begin_reading()
                reads = await self._read()
                if not self._host.sessions.has(self._session):
                    return {}  # the session has ended: nothing would release what this acquires
                time_is_up = self._clock.monotonic() >= until
                missing_bytes = self._limits.size_bytes_min - sum(len(read.chunk) for read in reads)
                enough = missing_bytes <= 0
                delivered = self._acquire(reads) if enough or time_is_up else {}
                if delivered or time_is_up or self._has_failed or self._limits.size_bytes_min <= 0:
                    return delivered | self._reported()
                if not (enough and reads):
                    for read in reads:
                        read.hosted.wake_next(self._waiter)
                    self._waiter.missing_bytes = missing_bytes
                    await self._wait(until)
                else:  # no records for consumers in it, or other members have acquired them
                    await asyncio.sleep(0)
        finally:
            for hosted in self._watched:
                hosted.remove_waiter(self._waiter)

    @property
    def _has_failed(self) -> bool:
        return len(self._failures) >= min(len(self._session.wanted), FAILURES_MAX)

    def _reported(self) -> dict[TopicIdPartition, Delivered]:
        for wanted in self._failures:
            self._session.served(wanted)
        return self._failures

    async def _wait(self, until: float) -> None:
        seconds = max(until - self._clock.monotonic(), 0.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, RETRY_SECONDS) if self._unloaded else seconds):
                await self._waiter.woken.wait()

    # reading

    async def _read(self) -> list[Read]:
        """Read up to the answer's size limit, in the session's order; nothing is acquired yet."""
        found: list[Read] = []
        bytes_left = self._limits.size_bytes_max
        self._unloaded = False
        self._failures = {}
        for wanted in list(self._session.wanted):
            if (bytes_left <= 0 and found) or len(self._failures) >= FAILURES_MAX:
                break
            if self._pace.is_due:
                await self._pace.rest()
            try:
                self._check_allowed(wanted[0])
                hosted = self._hosted(wanted)
                chunk = await self._read_one(hosted, bytes_left) if hosted is not None else None
            except KafkaError as error:
                self._failures[wanted] = Delivered(error=error.with_traceback(None))  # whose frame has `self`: a cycle
                continue
            if hosted is not None and chunk is not None:
                found.append(Read(wanted, hosted, chunk))
                bytes_left -= len(chunk)
        return found

    def _check_allowed(self, topic: bytes) -> None:
        if self._refused is not None and (error := self._refused(topic)) is not None:
            raise error

    def _hosted(self, wanted: TopicIdPartition) -> HostedShare | None:
        """None while the state is not loaded: the fetch is woken when it is, or retries."""
        hosted = self._host.find(self._session.group_id, wanted) or self._loaded(wanted)
        if hosted is not None:
            self._watched[hosted] = None
            hosted.add_waiter(self._waiter)
        return hosted

    def _loaded(self, wanted: TopicIdPartition) -> HostedShare | None:
        load = self._loads.pop(wanted, None)
        if load is None or (load.done() and load.cancelled()):
            load = self._host.load(self._session.group_id, wanted)
            load.add_done_callback(lambda _: self._waiter.wake())
        if not load.done():
            self._loads[wanted] = load
            return None
        error = load.exception()
        if error is None:
            return load.result() if load.result().leads else None
        if not isinstance(error, KafkaError):
            raise error
        if error.code not in LATER:
            raise client_error(error)
        self._unloaded = True
        return None

    async def _read_one(self, hosted: HostedShare, bytes_left: int) -> Chunk | None:
        partition, begin = hosted.partition, hosted.share.next_offset
        committed = self._settings.read_committed
        end = partition.last_stable_offset if committed else partition.high_watermark
        if begin is None or begin >= end or self._limits.records_max <= 0:
            return None
        size = min(bytes_left, PARTITION_BYTES_MAX)
        read = partition.read_slice(start=begin, end=end, size_bytes_max=size, whole_first=True)
        if read is None:
            read = await partition.read_slice_cold(start=begin, end=end, size_bytes_max=size, whole_first=True)
        return Chunk(begin, read, read_committed=committed) if read.data else None

    # acquiring

    def _acquire(self, reads: Iterable[Read]) -> dict[TopicIdPartition, Delivered]:
        """Acquire from all partitions in one turn, so that no record stays locked while others are read."""
        now = self._clock.monotonic()
        missing, batches_left = self._limits.records_max, BATCHES_MAX
        delivered: dict[TopicIdPartition, Delivered] = {}
        for wanted, hosted, chunk in reads:
            if missing <= 0 or batches_left <= 0:
                break
            if not hosted.leads:
                continue
            wish = AcquireLimits(missing, batches_left, self._limits.batch_size)
            lock_s = self._settings.lock_ms / 1000
            acquired = hosted.acquire(self._session.member_id, chunk, wish, lock_s=lock_s, now=now)
            batches_left -= chunk.parsed
            if acquired:
                delivered[wanted] = Delivered(chunk.holding(acquired), tuple(acquired))
                missing -= sum(span.last - span.first + 1 for span in acquired)
                self._session.served(wanted)
                self._session.holding.add(wanted)
        return delivered
