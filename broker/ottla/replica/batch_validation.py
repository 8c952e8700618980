"""Validates every batch of a client before it is appended, so that all stored records can be read by every client.

Small batches are validated on the event loop, large ones in the worker process. The size of a compressed body is known
only when it is decompressed, so decompression starts here and is abandoned at a limit. Batches of followers come from a
leader that validated them; the broker's own batches need no check.
"""

import asyncio
from collections.abc import Iterable, Iterator

from ottla.compiled import is_compiled
from ottla.errors import Code, KafkaError
from ottla.replica.serial_queue import SerialQueue
from ottla.storage.core.settings import LogSettings
from ottla.storage.workers.recompress import opened, recompress
from ottla.storage.workers.worker import Worker, WorkerDied
from ottla.wire import batch as batches
from ottla.wire import framing
from ottla.wire.batch import CODEC_MASK, HEADER_BYTES, OVERHEAD_BYTES, Batch
from ottla.wire.compression import DECOMPRESSED_BYTES_MAX, Codec
from ottla.wire.framing import RECORD_BYTES_MIN
from ottla.wire.record_checks import body_pieces, check_records

__all__ = ["BatchValidation"]

CODECS = {"uncompressed": 0, **{codec.name.lower(): int(codec) for codec in Codec}}
# All limits are of decompressed bytes. Checking a megabyte takes up to 0.7 ms compiled and 100 ms interpreted;
# gunzipping it takes 2 ms. Batches of the clients' default sizes, a megabyte or a mebibyte, fit with what is counted
# for their last, small pieces: no worker process is started for them.
HERE_BYTES_MAX = 5 << 18 if is_compiled(framing) else 128 << 10
UNCOMPRESSED_HERE_BYTES_MAX = 4 << 20 if is_compiled(framing) else 128 << 10
RECOMPRESSED_HERE_BYTES_MAX = 64 << 10
TURN_BYTES_MAX = 8 << 20 if is_compiled(framing) else 1 << 20  # in one turn of the loop, over all requests
PIECE_BYTES_COUNTED_MIN = 16 << 10  # the cost of a piece, even if it is empty


class TooMuch(Exception):
    """A body decompresses to more than the loop's limit."""


class BatchValidation:
    """Validation for all partitions of one broker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._jobs = SerialQueue()
        """By client: each has one job in the worker at a time, so that no client fills the worker's queue."""
        self._turn_bytes = 0

    def check_on_loop(self, batch: Batch, settings: LogSettings, partition: object) -> bool:
        """Validate on the loop. False when it must be `prepared` in the worker; KafkaError when it is invalid."""
        wanted = settings.compression_type
        codec = batch.attributes & CODEC_MASK
        if wanted != "producer" and CODECS[wanted] != codec:
            return False
        size = batch.length + OVERHEAD_BYTES
        if size > settings.batch_bytes_max:
            return True  # the append refuses it
        compacted = str(partition) if "compact" in settings.cleanup_policies else None
        if not codec:
            if size > UNCOMPRESSED_HERE_BYTES_MAX:
                return False
            check_records(batch, body_pieces(batch), compacted_partition=compacted)
            return True
        if batch.count * RECORD_BYTES_MIN > HERE_BYTES_MAX or size > HERE_BYTES_MAX:
            return False
        try:
            check_records(batch, self._counted(body_pieces(batch), HERE_BYTES_MAX), compacted_partition=compacted)
        except TooMuch:
            return False
        return True

    async def prepared(
        self, batch: Batch, settings: LogSettings, partition: object, *, client: int, tried: bool = False
    ) -> Batch:
        """Validate, and recompress for the topic, in the worker. KafkaError when invalid. `tried`: too large for the
        loop."""
        if not tried and self.check_on_loop(batch, settings, partition):
            return batch
        codec = batch.codec if settings.compression_type == "producer" else CODECS[settings.compression_type]
        compacted = str(partition) if "compact" in settings.cleanup_policies else None
        level = _level(codec, settings)
        if batch.codec != codec and (found := self._recompressed_here(batch, codec, level, compacted)) is not None:
            return batches.parse(found)
        # Uncompressed records must fit into the topic's batches.
        bytes_max = settings.batch_bytes_max - HEADER_BYTES if codec == Codec.NONE else DECOMPRESSED_BYTES_MAX
        job = self._worker.run(opened, bytes(batch.data), codec, level, compacted, bytes_max)
        try:
            changed = await self._jobs.join(client, job)
        except WorkerDied as died:
            text = f"{died}; nothing was written, send the batch again"
            raise KafkaError(Code.kafka_storage_error, text) from died
        return batch if changed is None else batches.parse(changed)

    def _recompressed_here(self, batch: Batch, codec: int, level: int | None, compacted: str | None) -> bytes | None:
        if batch.size > RECOMPRESSED_HERE_BYTES_MAX:
            return None
        try:
            for _ in self._counted(body_pieces(batch), RECOMPRESSED_HERE_BYTES_MAX):
                pass
        except TooMuch:
            return None
        return recompress(batch.data, codec, level, RECOMPRESSED_HERE_BYTES_MAX, compacted_partition=compacted)

    def _counted(self, pieces: Iterable[bytes], bytes_max: int) -> Iterator[bytes]:
        bytes_left = min(bytes_max, TURN_BYTES_MAX - self._turn_bytes)
        spent = 0
        try:
            for piece in pieces:
                spent += max(len(piece), PIECE_BYTES_COUNTED_MIN)
                if spent > bytes_left:
                    raise TooMuch
                yield piece
        finally:
            if self._turn_bytes == 0:
                asyncio.get_running_loop().call_soon(self._next_turn)
            self._turn_bytes += spent

    def _next_turn(self) -> None:
        self._turn_bytes = 0


def _level(codec: int, settings: LogSettings) -> int | None:
    levels = {
        Codec.GZIP: settings.compression_gzip_level,
        Codec.LZ4: settings.compression_lz4_level,
        Codec.ZSTD: settings.compression_zstd_level,
    }
    return levels.get(Codec(codec))
