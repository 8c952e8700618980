"""Checks of a batch before it is appended to a leader's log or to a copy."""

from collections.abc import Sequence

from ottla.errors import Code, KafkaError
from ottla.storage.core.producers import Producers, end_marker
from ottla.storage.core.settings import LogSettings
from ottla.storage.core.verification import Ticket
from ottla.wire.batch import APPEND_TIME_BIT, Batch, crc_matches

__all__ = ["NO_TIMESTAMP", "check_replicated", "check_timestamps", "check_transaction", "too_large"]

NO_TIMESTAMP = -1


def too_large(topic_partition: str, settings: LogSettings, size: int) -> KafkaError:
    if size > settings.max_message_bytes:
        return KafkaError(
            Code.message_too_large,
            f"The record batch size in the append to {topic_partition} is {size} bytes which exceeds the maximum "
            f"configured value of {settings.max_message_bytes}.",
        )
    return KafkaError(
        Code.record_list_too_large,
        f"Message batch size is {size} bytes in append to partition {topic_partition}, which exceeds the "
        f"maximum configured segment size of {settings.segment_bytes}.",
    )


def check_transaction(producers: Producers, batch: Batch, ticket: Ticket | None) -> None:
    if batch.is_control and (marker := end_marker(batch)):
        producers.check_marker(batch, marker)
    elif batch.is_transactional:
        producers.require_verified(batch, ticket)


def check_timestamps(batch: Batch, settings: LogSettings, now_ms: int) -> None:
    """Checks the header's two timestamps, which bound those of records in time order."""
    if batch.attributes & APPEND_TIME_BIT:
        raise KafkaError(
            Code.invalid_timestamp, "Invalid timestamp type: producer should not set timestamp type to LogAppendTime."
        )
    if settings.append_time:
        return
    earliest, latest = now_ms - settings.timestamp_before_max_ms, now_ms + settings.timestamp_after_max_ms
    if earliest <= batch.base_timestamp <= latest and earliest <= batch.max_timestamp <= latest:
        return
    for timestamp in (batch.max_timestamp, batch.base_timestamp):
        if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
            raise KafkaError(
                Code.invalid_timestamp,
                f"Timestamp {timestamp} of a message is out of range. The timestamp should be within "
                f"[{earliest}, {latest}]",
            )


def check_replicated(
    topic_partition: str, batches: Sequence[Batch], *, end: int, log_epoch: int, leader_epoch: int
) -> None:
    """Batches of a leader must follow the copy's end and last epoch."""
    for batch in batches:
        if not crc_matches(batch):
            raise KafkaError(Code.corrupt_message, f"{batch!r} from the leader of {topic_partition} has a wrong CRC")
        if batch.base_offset < end or batch.last_offset_delta < 0:
            raise KafkaError(
                Code.corrupt_message,
                f"Unexpected offset in append to {topic_partition}: {batch!r} does not follow the end {end}",
            )
        if not log_epoch <= batch.leader_epoch <= leader_epoch:
            raise KafkaError(
                Code.corrupt_message,
                f"Unexpected epoch in append to {topic_partition}: {batch!r} is not between epochs "
                f"{log_epoch} of the log and {leader_epoch} of the leader",
            )
        end, log_epoch = batch.last_offset + 1, batch.leader_epoch
