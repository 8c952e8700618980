"""What a client's records must be where the broker looks at them: compacted topics and recompression. Pure."""

from collections.abc import Sequence

from ottla.errors import Code, KafkaError
from ottla.wire.batch import Batch
from ottla.wire.records import headers, payload, spans

__all__ = ["InvalidRecords", "keys_missing", "refuse_keyless", "refuse_malformed"]

KEY_LENGTH = 5  # in a span


class InvalidRecords(KafkaError):
    """Some records of a batch are refused: Kafka names each by its index (KIP-467)."""

    SHOWN_MAX = 3

    def __init__(self, record_errors: Sequence[tuple[int, str]]) -> None:
        shown = ", ".join(
            f"RecordError(batchIndex={i}, message='{text}')" for i, text in record_errors[: self.SHOWN_MAX]
        )
        super().__init__(
            Code.invalid_record,
            f"One or more records have been rejected due to {len(record_errors)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]",
        )
        self.record_errors = tuple(record_errors)

    def __reduce__(self) -> tuple[type, tuple[object]]:
        return type(self), (self.record_errors,)


def keys_missing(batch: Batch) -> list[int]:
    """The indexes of the records that have no key."""
    return [index for index, span in enumerate(spans(payload(batch), batch.count)) if span[KEY_LENGTH] < 0]


def refuse_keyless(batch: Batch, *, partition: str) -> None:
    """What a compacted topic demands of a client's batch."""
    text = f"Compacted topic cannot accept message without key in topic partition {partition}"
    if indexes := keys_missing(batch):
        raise InvalidRecords([(index, text) for index in indexes])


def refuse_malformed(records: bytes, count: int) -> None:
    """Every record whole, with its headers, and numbered from 0 on."""
    for index, (_, end, _, offset_delta, _, _, value_start, value_length) in enumerate(spans(records, count)):
        headers(records, value_start + max(value_length, 0), end)
        if offset_delta != index:
            raise KafkaError(Code.invalid_record, f"record {index} of a batch has the offset delta {offset_delta}")
