"""Compacts the logs of a broker, one at a time: chooses the dirtiest, rewrites it in the worker, swaps the result in.

A log that cannot be cleaned is excluded until the next start, with one log line that says why; a disk error takes the
log dir offline.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.storage.compaction import rewriting as compaction
from ottla.storage.compaction.rewriting import Cleaning
from ottla.storage.core import names
from ottla.storage.core.batch_filter import LastWritten
from ottla.storage.core.cleaned_transactions import CleanedTransactions
from ottla.storage.core.cleaning_plan import Due, LogFacts, SegmentFacts, dirtiest, due
from ottla.storage.core.names import TopicPartition
from ottla.storage.core.offset_map import KEYS_MAX
from ottla.storage.core.settings import UNLIMITED
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.log import aborted_index, replace
from ottla.storage.log.log import Log
from ottla.storage.log.segment import Segment
from ottla.storage.log.segment_files import FILE_KINDS
from ottla.storage.workers.worker import Worker, WorkerDied
from ottla.system import System, finished

__all__ = ["Cleaner"]

logger = logging.getLogger("ottla.storage")

WORKERS_PER_LOG_MAX = 3  # worker deaths during a log's cleaning before the log is excluded


class Cleaner:
    """`stable_offset` returns the offset below which a partition is replicated and its transactions have ended."""

    def __init__(
        self,
        directories: LogDirectories,
        *,
        worker: Worker,
        system: System,
        stable_offset: Callable[[TopicPartition], int],
        keys_max: int = KEYS_MAX,
    ) -> None:
        self.uncleanable: set[TopicPartition] = set()
        self._deaths: dict[TopicPartition, int] = {}  # consecutive worker deaths while the log was cleaned
        self._directories = directories
        self._worker = worker
        self._system = system
        self._stable_offset = stable_offset
        self._keys_max = keys_max

    async def clean_once(self) -> bool:
        """Clean the dirtiest log; False when no log is due, or none can be cleaned now."""
        now_ms = self._system.clock.wall_ms()
        self.uncleanable &= self._directories.logs.keys()
        self._deaths = {key: deaths for key, deaths in self._deaths.items() if key in self._directories.logs}
        candidates = [
            (key, log, self._stable_offset(key), self._directories.cleaned.get(key))
            for key, log in self._directories.logs.items()
            if "compact" in log.settings.cleanup_policies and len(log.segments) > 1 and key not in self.uncleanable
        ]
        if not candidates:
            return False
        plans = await self._system.threads.run(_plans, [one[1:] for one in candidates], now_ms)
        chosen = dirtiest(plans)
        if chosen is None:
            return False
        key, log, _, _ = candidates[chosen]
        plan = plans[chosen]
        assert plan is not None
        return await self._clean_contained(key, log, plan, now_ms)

    async def _clean_contained(self, key: TopicPartition, log: Log, plan: Due, now_ms: int) -> bool:
        """False when the worker died, perhaps not because of the log: it is retried later."""
        try:
            reached = await self._clean(log, plan, now_ms)
            if reached is not None:
                await self._directories.write_cleaned(key, reached)
            self._deaths.pop(key, None)
        except WorkerDied as died:
            self._deaths[key] = self._deaths.get(key, 0) + 1
            if self._deaths[key] < WORKERS_PER_LOG_MAX:
                logger.warning("%s is compacted later: %s", log.topic_partition, died)
                return False
            self._exclude(key, log, died)
        except Exception as error:
            if self._directories.logs.get(key) is not log or _is_of_removed_segment(error, log):
                return True  # deleted, offline or shortened meanwhile: the rest is cleaned another time
            if isinstance(error, OSError):
                self._directories.fail(self._directories.directory_of(log), error)
                return True
            self._exclude(key, log, error)
        return True

    def _exclude(self, key: TopicPartition, log: Log, error: Exception) -> None:
        self.uncleanable.add(key)
        logger.error("%s is not compacted until the next start: %s", log.topic_partition, error)

    async def _clean(self, log: Log, plan: Due, now_ms: int) -> int | None:
        """The offset up to which the log is clean now; None when it changed during the cleaning."""
        await self._settle_epochs(log)
        segments = {one.base_offset: one for one in log.segments if one.base_offset < plan.upto}
        cleaning = await self._system.threads.run(_cleaning, log, plan, now_ms, self._keys_max)
        reached = await self._worker.run(compaction.index, log.disk, cleaning)
        rewritten = [one for one in cleaning.segments if one[0] < reached]
        transactions: CleanedTransactions | None = None
        for bases in compaction.group(rewritten, segment_bytes=log.settings.segment_bytes, upto=plan.upto):
            result = await self._worker.run(compaction.rewrite, log.disk, cleaning, bases, transactions)
            transactions = result.transactions
            if not result.changed and len(bases) == 1:
                await self._system.threads.run(_drop, log, bases[0])
            elif not await self._replace(log, [segments[base] for base in bases], cleaning):
                return None
        await self._worker.run(compaction.forget)
        return reached

    async def _settle_epochs(self, log: Log) -> None:
        """Make the starts of leader epochs durable, because cleaning may remove the batches that show them.

        After a crash, epochs are read from the batches beyond the recovery point. An epoch without batches would be
        lost, and a follower with an uncommitted record of it would not be asked to truncate that record.
        """
        await finished(self._system.threads.run(log.flush_sealed))
        await self._directories.write_recovery_points(log)

    async def _replace(self, log: Log, old: Sequence[Segment], cleaning: Cleaning) -> bool:
        """Swap the rewritten segment in. Renames and the sync of the folder block, so they run in a thread.

        Nothing else removes segments while `changing` is held, so segments that were unchanged before the thread still
        are after it; appends and rolls concern the active segment, which is none of these.
        """
        async with log.changing:
            if not self._is_unchanged(log, old, cleaning):
                return False
            exchange = partial(replace.exchange, old, old[0].base_offset, created_ms=self._system.clock.wall_ms())
            new = await finished(self._system.threads.run(exchange))
            log.replaced(old, new)
        return True

    def _is_unchanged(self, log: Log, old: Sequence[Segment], cleaning: Cleaning) -> bool:
        """False when retention, deletion or truncation came first; the next start removes the rewritten files."""
        sizes = dict(cleaning.segments)
        return (
            self._directories.logs.get(self._directories.key_of(log)) is log
            and set(old) <= set(log.segments)
            and all(one.size == sizes[one.base_offset] for one in old)
        )


def _plans(logs: Sequence[tuple[Log, int, int | None]], now_ms: int) -> list[Due | None]:
    return [due(_facts(log, stable_offset, cleaned), now_ms) for log, stable_offset, cleaned in logs]


def _facts(log: Log, stable_offset: int, cleaned: int | None) -> LogFacts:
    *sealed, active = log.segments
    settings = log.settings
    wants_max, wants_first = settings.min_compaction_lag_ms > 0, settings.max_compaction_lag_ms < UNLIMITED
    return LogFacts(
        settings=settings,
        segments=[
            SegmentFacts(
                base_offset=one.base_offset,
                size=one.size,
                max_timestamp=one.largest_timestamp() if wants_max else 0,
                first_timestamp=one.first_timestamp if wants_first else 0,
            )
            for one in sealed
        ],
        active_base=active.base_offset,
        start_offset=log.start_offset,
        end_offset=log.end_offset,
        stable_offset=stable_offset,
        checkpoint=cleaned,
    )


def _cleaning(log: Log, plan: Due, now_ms: int, keys_max: int) -> Cleaning:
    segments = log.segments
    return Cleaning(
        folder=log.folder,
        segments=[(one.base_offset, one.size) for one in segments if one.base_offset < plan.upto],
        first_dirty=plan.first_dirty,
        upto=plan.upto,
        now_ms=now_ms,
        delete_retention_ms=log.settings.delete_retention_ms,
        index_interval_bytes=log.settings.index_interval_bytes,
        producers={
            one.id: LastWritten(one.written[-1].last_offset if one.written else None, one.epoch)
            for one in list(log.producers.by_id.values())
        },
        aborted=aborted_index.read_all(log.disk, log.folder, [one.base_offset for one in segments]),
        keys_max=keys_max,
    )


def _is_of_removed_segment(error: Exception, log: Log) -> bool:
    return isinstance(error, FileNotFoundError) and error.filename not in {one.handle.path for one in log.segments}


def _drop(log: Log, base_offset: int) -> None:
    """Remove the files of a rewrite that changed nothing."""
    for kind in FILE_KINDS:
        log.disk.remove(f"{log.folder}/{names.name(base_offset, kind)}{names.CLEANED}")
