"""What a client's records must be before they are stored: they frame as their batch says, with keys where compaction
needs them. Pure."""

from collections.abc import Iterable, Sequence

from ottla.errors import Code, KafkaError
from ottla.wire.batch import HEADER_BYTES, Batch
from ottla.wire.compression import Codec, pieces
from ottla.wire.framing import Framing

__all__ = ["InvalidRecords", "body_pieces", "check_records"]


class InvalidRecords(KafkaError):
    """Some records of a batch are refused: Kafka names each by its index (KIP-467); here the first of `total`."""

    SHOWN_MAX = 3

    def __init__(self, record_errors: Sequence[tuple[int, str]], total: int) -> None:
        shown = ", ".join(
            f"RecordError(batchIndex={i}, message='{text}')" for i, text in record_errors[: self.SHOWN_MAX]
        )
        super().__init__(
            Code.invalid_record,
            f"One or more records have been rejected due to {total} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
        )
        self.record_errors = tuple(record_errors)
        self.total = total

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.record_errors, self.total)


def body_pieces(batch: Batch) -> Iterable[bytes]:
    """The records of a batch, decompressed piece by piece. The uncompressed ones are one piece: a copy, for the
    compiled check takes only bytes; it costs less than reading them from a view."""
    body = memoryview(batch.data)[HEADER_BYTES:]
    return (body.tobytes(),) if batch.codec == Codec.NONE else pieces(batch.codec, body)


def check_records(batch: Batch, records: Iterable[bytes], *, compacted_partition: str | None) -> None:
    """Every record whole, with its headers, and numbered from 0 on; with a key for a compacted partition.

    `records` are those of the batch, decompressed. Raises KafkaError(INVALID_RECORD), or what reading them raises.
    """
    framing = Framing(batch.count)
    for piece in records:
        framing.feed(piece)
    framing.finish()
    if compacted_partition is not None and framing.keyless:
        text = f"Compacted topic cannot accept message without key in topic partition {compacted_partition}"
        raise InvalidRecords([(index, text) for index in framing.keyless_indexes], framing.keyless)
