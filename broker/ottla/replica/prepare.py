"""Batches that cannot be appended as they came: the topic asks for another compression, or for a key in every record.

Small ones are opened here, large ones in the worker process, away from the event loop.
"""

from ottla.storage.recompress import recompress
from ottla.storage.settings import LogSettings
from ottla.storage.worker import Worker
from ottla.wire import batch as batches
from ottla.wire.batch import Batch
from ottla.wire.compression import Codec
from ottla.wire.record_checks import refuse_keyless

__all__ = ["needs_preparation", "prepared"]

CODECS = {"uncompressed": 0, **{codec.name.lower(): int(codec) for codec in Codec}}
OPENED_HERE_BYTES_MAX = 4 * 1024


def needs_preparation(batch: Batch, settings: LogSettings) -> bool:
    wanted = settings.compression_type
    return (wanted != "producer" and CODECS[wanted] != batch.codec) or "compact" in settings.cleanup_policies


async def prepared(batch: Batch, settings: LogSettings, worker: Worker, *, partition: str) -> Batch:
    """The batch as the topic wants it, or the KafkaError that refuses it."""
    codec = batch.codec if settings.compression_type == "producer" else CODECS[settings.compression_type]
    compacted = "compact" in settings.cleanup_policies
    arguments = (bytes(batch.data), codec, _level(codec, settings), partition if compacted else None)
    if batch.size <= OPENED_HERE_BYTES_MAX:
        return batches.parse(prepare(*arguments))
    return batches.parse(await worker.run(prepare, *arguments))


def prepare(data: bytes, codec: int, level: int | None, compacted_partition: str | None) -> bytes:
    """What the worker process does for one batch."""
    if compacted_partition is not None:
        refuse_keyless(batches.parse(data), partition=compacted_partition)
    return recompress(data, codec, level)


def _level(codec: int, settings: LogSettings) -> int | None:
    levels = {
        Codec.GZIP: settings.compression_gzip_level,
        Codec.LZ4: settings.compression_lz4_level,
        Codec.ZSTD: settings.compression_zstd_level,
    }
    return levels.get(Codec(codec))
