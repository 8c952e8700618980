"""Loads a shard: replays its log from the start when this broker becomes the leader."""

import asyncio
import logging
from collections.abc import Callable

from ottla.coordination.core.records import UnknownType
from ottla.coordination.shard import CoordinatorShard
from ottla.wire import batch as batches
from ottla.wire import records
from ottla.wire.batch import Batch

__all__ = ["Loading"]

log = logging.getLogger("ottla.coordination")

BYTES_PER_TURN_MAX = 256 * 1024  # read and replayed before other work on the loop gets its turn
LOGGED_PER_SHARD_MAX = 10  # lines in the log about records that cannot be read

Replay = Callable[[memoryview, memoryview | None], None]


class Loading:
    """One attempt. `skipped` counts records that could not be decoded; they are logged and skipped.

    A record is skipped whatever its decoder raises: one bad record must not make a partition of the topic unavailable.
    Kafka 4.1 also skips records of an unknown type, but stops at any other error: its group coordinator then serves no
    group of the partition, its transaction coordinator serves what it had read so far. A skipped record stays in the
    log.
    """

    def __init__(self, shard: CoordinatorShard, *, read_bytes_max: int) -> None:
        self._shard = shard
        self._read_bytes_max = min(read_bytes_max, BYTES_PER_TURN_MAX)
        self.records = 0
        self.skipped = 0

    async def run(self) -> bool:
        """False when this broker stopped leading during the load."""
        partition = self._shard.partition
        position, end = partition.log.start_offset, partition.log.end_offset
        while position < end:
            data = await self._read(position, end)
            if not self._shard.leads:
                return False
            if not data:
                break
            for batch in batches.iterate(data):
                if batch.last_offset >= position:
                    self._replay_safely(batch)
                    position = batch.last_offset + 1
            await asyncio.sleep(0)
        return self._shard.leads

    async def _read(self, position: int, end: int) -> bytes:
        partition, size = self._shard.partition, self._read_bytes_max
        data = partition.read(start=position, end=end, size_bytes_max=size, whole_first=True)
        if data is None:
            data = await partition.read_cold(start=position, end=end, size_bytes_max=size, whole_first=True)
        return data

    def _replay_safely(self, batch: Batch) -> None:
        try:
            self.replay_batch(batch)
        except Exception as error:  # it cannot be framed or decompressed, so the records after it cannot be found
            self._skip(batch.base_offset, error)

    def replay_batch(self, batch: Batch) -> None:
        if not batch.is_control:
            self.replay_records(batch, self._shard.replay)

    def replay_records(self, batch: Batch, replay: Replay) -> None:
        for record in records.iterate(batch):
            self._replay(record, replay)

    def _replay(self, record: records.Record, replay: Replay) -> None:
        self.records += 1
        if record.key is None:
            self._skip(record.offset, ValueError("it has no key"))
            return
        self._shard.replayed_offset = record.offset
        try:
            value = None if record.value is None else memoryview(record.value)
            replay(memoryview(record.key), value)
        except UnknownType as error:
            log.debug("%s: record %d skipped: %s", self._shard, record.offset, error)
        except Exception as error:
            self._skip(record.offset, error)

    def _skip(self, offset: int, error: Exception) -> None:
        self.skipped += 1
        if self.skipped <= LOGGED_PER_SHARD_MAX:
            log.error("%s: the record at offset %d cannot be decoded and is skipped: %r", self._shard, offset, error)
