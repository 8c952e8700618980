"""A client's batch in the codec that its topic asks for. Pure: runs in the worker process."""

from ottla.system import Buffer
from ottla.wire import records
from ottla.wire.assembly import rebuilt
from ottla.wire.batch import parse
from ottla.wire.compression import DECOMPRESSED_BYTES_MAX
from ottla.wire.record_checks import refuse_malformed

__all__ = ["recompress"]


def recompress(
    data: Buffer, codec: int, level: int | None = None, size_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """The same records, offsets, timestamps and sequences in `codec`, with a CRC of their own.

    As in Kafka a control batch stays as it is. Records that do not fill the batch as its header says are refused: the
    new CRC would vouch for them.
    """
    batch = parse(data)
    if batch.is_control or batch.codec == codec:
        return bytes(data)
    payload = records.payload(batch, size_bytes_max=size_bytes_max)
    refuse_malformed(payload, batch.count)
    return rebuilt(batch, payload, count=batch.count, codec=codec, level=level)
