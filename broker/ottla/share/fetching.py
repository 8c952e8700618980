"""The fetching part of ShareFetch: wait until there is enough to read, then acquire it, partition by partition."""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer, Clock
from ottla.share.core.chunk import Chunk
from ottla.share.core.partition import Acquired
from ottla.share.core.sessions import ShareSession, Wanted
from ottla.share.host import ShareHost
from ottla.share.hosted import PASSING, HostedShare, Wish, client_error

__all__ = ["Delivered", "Limits", "ShareFetching"]

PARTITION_BYTES_MAX = 1024 * 1024  # read at once of one partition: there is no such limit in the request
RETRY_SECONDS = 0.2  # until a state that cannot be loaded now is asked for again
LATER = (*PASSING, Code.group_id_not_found)  # the state is not there yet: for a fetch, that is like having no records


class Limits(NamedTuple):
    wait_s: float
    size_bytes_min: int
    size_bytes_max: int
    records_max: int
    batch_size: int


@dataclass(slots=True)
class Delivered:
    """What a fetch gets of one partition."""

    records: Buffer = b""
    acquired: tuple[Acquired, ...] = ()
    error: KafkaError | None = None


class Read(NamedTuple):
    wanted: Wanted
    hosted: HostedShare
    chunk: Chunk


class ShareFetching:
    """One request. `run` gives what was acquired, and what failed, by partition; the session's turns move on.

    `denied`: what its client may not read.
    """

    def __init__(
        self,
        host: ShareHost,
        session: ShareSession,
        limits: Limits,
        *,
        clock: Clock,
        denied: Mapping[Wanted, KafkaError] = MappingProxyType({}),
    ) -> None:
        self._host = host
        self._session = session
        self._limits = limits
        self._clock = clock
        self._denied = denied
        self._settings = host.settings_of(session.group_id)
        self._woken = asyncio.Event()
        self._watched: dict[HostedShare, None] = {}
        self._failures: dict[Wanted, Delivered] = {}
        self._loads: dict[Wanted, asyncio.Task[HostedShare]] = {}
        self._unloaded = False

    async def run(self) -> dict[Wanted, Delivered]:
        until = self._clock.monotonic() + self._limits.wait_s
        try:
            while True:
                self._woken.clear()
                reads = await self._read()
                if not self._host.sessions.has(self._session):
                    return {}  # nobody would release what it acquires now
                time_is_up = self._clock.monotonic() >= until
                enough = sum(len(read.chunk) for read in reads) >= self._limits.size_bytes_min
                delivered = self._acquire(reads) if enough or time_is_up else {}
                if delivered or time_is_up or self._has_failed or self._limits.size_bytes_min <= 0:
                    return delivered | self._failures
                if not (enough and reads):
                    for read in reads:
                        read.hosted.pass_on(self._woken)
                    await self._wait(until)
                else:  # nothing in it was for consumers, or others have it by now
                    await asyncio.sleep(0)
        finally:
            for hosted in self._watched:
                hosted.leave(self._woken)

    @property
    def _has_failed(self) -> bool:
        return len(self._failures) >= len(self._session.wanted)

    async def _wait(self, until: float) -> None:
        seconds = max(until - self._clock.monotonic(), 0.0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, RETRY_SECONDS) if self._unloaded else seconds):
                await self._woken.wait()

    # reading

    async def _read(self) -> list[Read]:
        """As much as may be answered, from the partitions whose turn it is; nothing is acquired yet."""
        found: list[Read] = []
        bytes_left = self._limits.size_bytes_max
        self._unloaded = False
        self._failures = {}
        for wanted in list(self._session.wanted):
            if bytes_left <= 0 and found:
                break
            try:
                if wanted in self._denied:
                    raise self._denied[wanted]
                hosted = self._hosted(wanted)
                chunk = await self._read_one(hosted, bytes_left) if hosted is not None else None
            except KafkaError as error:
                self._failures[wanted] = Delivered(error=error)
                continue
            if hosted is not None and chunk is not None:
                found.append(Read(wanted, hosted, chunk))
                bytes_left -= len(chunk)
        return found

    def _hosted(self, wanted: Wanted) -> HostedShare | None:
        """None while its state cannot be had: this wakes up when it is loaded, or tries again."""
        hosted = self._host.find(self._session.group_id, wanted) or self._loaded(wanted)
        if hosted is not None:
            self._watched[hosted] = None
            hosted.watch(self._woken)
        return hosted

    def _loaded(self, wanted: Wanted) -> HostedShare | None:
        load = self._loads.pop(wanted, None)
        if load is None or (load.done() and load.cancelled()):
            load = self._host.load(self._session.group_id, wanted)
            load.add_done_callback(lambda _: self._woken.set())
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

    def _acquire(self, reads: Iterable[Read]) -> dict[Wanted, Delivered]:
        """At once for all, so that nothing waits locked for the rest."""
        now = self._clock.monotonic()
        missing = self._limits.records_max
        delivered: dict[Wanted, Delivered] = {}
        for wanted, hosted, chunk in reads:
            if missing <= 0:
                break
            if not hosted.leads:
                continue
            wish = Wish(missing, self._limits.batch_size)
            lock_s = self._settings.lock_ms / 1000
            acquired = hosted.acquire(self._session.member_id, chunk, wish, lock_s=lock_s, now=now)
            if acquired:
                delivered[wanted] = Delivered(chunk.holding(acquired), tuple(acquired))
                missing -= sum(span.last - span.first + 1 for span in acquired)
                self._session.served(wanted)
        return delivered
