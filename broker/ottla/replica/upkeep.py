"""A broker's periodic work: retention, flushes by time, checkpoints, compaction, expiry of producers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.replica.settings import LiveSettings
from ottla.storage.compaction.cleaner import Cleaner
from ottla.system import System

__all__ = ["Upkeep"]

log = logging.getLogger("ottla.upkeep")

PARTITIONS_PER_STEP = 50


class Upkeep:
    def __init__(self, *, host: ReplicaHost, settings: LiveSettings, system: System, cleaner: Cleaner) -> None:
        self._host = host
        self._settings = settings
        self._system = system
        self._cleaner = cleaner
        self._tasks: list[asyncio.Task[None]] = []
        self._flushed_at: dict[object, float] = {}

    def start(self) -> None:
        chores: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("log.retention.check.interval.ms", self.delete_old),
            ("log.flush.scheduler.interval.ms", self.flush_by_time),
            ("replica.high.watermark.checkpoint.interval.ms", self.write_checkpoints),
            ("producer.id.expiration.check.interval.ms", self.expire_producers),
            ("log.cleaner.backoff.ms", self.compact),
        )
        self._tasks = [asyncio.ensure_future(self._repeat(setting, chore)) for setting, chore in chores]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, setting: str, chore: Callable[[], Awaitable[None]]) -> None:
        if chore in (self.delete_old, self.flush_by_time):
            await asyncio.sleep(self._settings.broker("log.initial.task.delay.ms") / 1000)
        while True:
            await asyncio.sleep(min(self._settings.broker(setting) / 1000, 365 * 86400.0))
            try:
                await chore()
            except Exception:
                log.exception("upkeep (%s) failed; retrying", chore.__name__)

    async def delete_old(self) -> None:
        """Retention. A thread finds expired segments; they are removed from the log on the loop, their files in a
        thread."""
        now_ms = self._system.clock.wall_ms()
        for number, partition in enumerate(list(self._host)):
            if "delete" in partition.log.settings.cleanup_policies or partition.log.start_offset > 0:
                deleted = await partition.delete_expired(
                    now_ms, partition.high_watermark, is_wanted=partial(self._is_here, partition)
                )
                if deleted:
                    partition.start_moved()
                    log.info(
                        "%s: %d expired segments deleted, the log starts at %d",
                        partition,
                        deleted,
                        partition.log.start_offset,
                    )
            await partition.purge(now_ms)
            if number % PARTITIONS_PER_STEP == 0:
                await asyncio.sleep(0)
        await self._host.directories.purge(now_ms)

    def _is_here(self, partition: Partition) -> bool:
        return self._host.find(partition.topic, partition.index) is partition

    async def flush_by_time(self) -> None:
        now = self._system.clock.monotonic()
        async for partition in self._host.in_slices():
            limit_ms = partition.log.settings.flush_ms
            unflushed = partition.log.flushed_offset < partition.log.end_offset
            if not unflushed:
                self._flushed_at.pop(partition, None)
            elif (now - self._flushed_at.setdefault(partition, now)) * 1000 >= limit_ms:
                partition.flush_soon()
                del self._flushed_at[partition]

    async def write_checkpoints(self) -> None:
        async for partition in self._host.in_slices():
            await partition.flush_sealed()
        await self._host.directories.write_checkpoints(await self._host.collect_high_watermarks())

    async def expire_producers(self) -> None:
        now_ms = self._system.clock.wall_ms()
        async for partition in self._host.in_slices():
            for _ in partition.log.producers.expiring(now_ms, partition.log.settings.producer_expiry_ms):
                await asyncio.sleep(0)

    async def compact(self) -> None:
        while self._settings.broker("log.cleaner.enable") and await self._cleaner.clean_once():
            pass
