"""Appending to a log, as its leader or as a follower. On the event loop; synchronous; one write each."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer
from ottla.storage.core.producers import end_marker
from ottla.storage.core.settings import LogSettings
from ottla.storage.core.verification import Ticket
from ottla.storage.log.rolling import must_roll
from ottla.storage.log.segment import RELATIVE_OFFSET_MAX
from ottla.wire.batch import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    HEADER_BYTES,
    OVERHEAD_BYTES,
    STAMP,
    STAMP_BYTES,
    TRANSACTIONAL_BIT,
    Batch,
    crc_matches,
    iterate,
)
from ottla.wire.batch import stamp_append_time as stamp_time

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

__all__ = ["Appended", "append", "append_replicated"]

NO_TIMESTAMP = -1
PART_OF_TRANSACTION = CONTROL_BIT | TRANSACTIONAL_BIT


class Appended(NamedTuple):
    """Where a batch went. `log_append_time` is -1 unless the log sets it; `must_flush`: flush.messages is reached."""

    base_offset: int
    last_offset: int
    log_append_time: int
    start_offset: int
    duplicate: bool
    must_flush: bool


def append(log: "Log", batch: Batch, *, leader_epoch: int, from_client: bool, ticket: Ticket | None = None) -> Appended:
    settings = log.settings
    now_ms = log.clock.wall_ms()
    if batch.length + OVERHEAD_BYTES > settings.batch_bytes_max and not batch.is_control:
        raise _too_large(log, batch.size)  # a marker must get in, however small a topic's batches have to be
    if from_client:
        _check_timestamps(batch, settings, now_ms)
    if batch.producer_id >= 0:
        earlier = log.producers.check(batch, offset=log.end_offset, from_client=from_client)
        if earlier is not None:
            _, _, first, last, timestamp = earlier
            return Appended(first, last, timestamp, log.start_offset, True, False)
        if batch.attributes & PART_OF_TRANSACTION:
            _check_transaction(log, batch, ticket)
    if settings.append_time:
        head = stamp_time(batch, base_offset=log.end_offset, leader_epoch=leader_epoch, now_ms=now_ms)
        return _write(log, batch, [head, memoryview(batch.data)[HEADER_BYTES:]], leader_epoch, now_ms, now_ms)
    head = STAMP.pack(log.end_offset, batch.length, leader_epoch)
    return _write(log, batch, [head, memoryview(batch.data)[STAMP_BYTES:]], leader_epoch, now_ms, NO_TIMESTAMP)


def _write(
    log: "Log", batch: Batch, stamped: list[Buffer], leader_epoch: int, now_ms: int, append_time: int
) -> Appended:
    settings = log.settings
    size = batch.length + OVERHEAD_BYTES
    base_offset = log.end_offset
    last_offset = base_offset + batch.last_offset_delta
    max_timestamp = append_time if append_time >= 0 else batch.max_timestamp
    segment = log.active
    if must_roll(segment, settings, size=size, last_offset=last_offset, max_timestamp=max_timestamp, now_ms=now_ms):
        segment = log.roll()
    interval = settings.index_interval_bytes
    segment.append(stamped, size=size, last_offset=last_offset, max_timestamp=max_timestamp, interval=interval)
    log.end_offset = last_offset + 1
    if leader_epoch != log.epochs.latest:
        log.epochs.assign(leader_epoch, base_offset)
    log.take_note(batch, base_offset=base_offset, timestamp=max_timestamp)
    must_flush = last_offset + 1 - log.flushed_offset >= settings.flush_messages
    return Appended(base_offset, last_offset, append_time, log.start_offset, False, must_flush)


def _too_large(log: "Log", size: int) -> KafkaError:
    settings = log.settings
    if size > settings.max_message_bytes:
        return KafkaError(
            Code.message_too_large,
            f"The record batch size in the append to {log.topic_partition} is {size} bytes which exceeds the maximum "
            f"configured value of {settings.max_message_bytes}.",
        )
    return KafkaError(
        Code.record_list_too_large,
        f"Message batch size is {size} bytes in append to partition {log.topic_partition}, which exceeds the "
        f"maximum configured segment size of {settings.segment_bytes}.",
    )


def _check_transaction(log: "Log", batch: Batch, ticket: Ticket | None) -> None:
    if batch.is_control and (marker := end_marker(batch)):
        log.producers.check_marker(batch, marker)
    elif batch.is_transactional:
        log.producers.require_verified(batch, ticket)


def _check_timestamps(batch: Batch, settings: LogSettings, now_ms: int) -> None:
    """By the header: its two timestamps bound those of a batch whose records are in order of time."""
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


def append_replicated(log: "Log", data: Buffer, *, leader_epoch: int) -> None:
    batches = list(iterate(data))
    end, epoch = log.end_offset, log.epochs.latest
    for batch in batches:
        _check_stamped(log, batch, end=end, epochs=(epoch, leader_epoch))
        end, epoch = batch.last_offset + 1, batch.leader_epoch
    for run in _runs(log, batches):
        _append_run(log, run)


def _check_stamped(log: "Log", batch: Batch, *, end: int, epochs: tuple[int, int]) -> None:
    if not crc_matches(batch):
        raise KafkaError(Code.corrupt_message, f"{batch!r} from the leader of {log.topic_partition} has a wrong CRC")
    if batch.base_offset < end or batch.last_offset_delta < 0:
        raise KafkaError(
            Code.corrupt_message,
            f"Unexpected offset in append to {log.topic_partition}: {batch!r} does not follow the end {end}",
        )
    if not epochs[0] <= batch.leader_epoch <= epochs[1]:
        raise KafkaError(
            Code.corrupt_message,
            f"Unexpected epoch in append to {log.topic_partition}: {batch!r} is not between epochs "
            f"{epochs[0]} of the log and {epochs[1]} of the leader",
        )


def _runs(log: "Log", batches: list[Batch]) -> Iterator[list[Batch]]:
    """The batches in as few writes as the segments allow; a new segment is begun where one is due."""
    run: list[Batch] = []
    size = 0
    for batch in batches:
        if _is_due(log, batch, size):
            if run:
                yield run
            run, size = [], 0
            if _is_due(log, batch, 0):
                log.roll(_base_for(log, batch))
        run.append(batch)
        size += batch.size
    if run:
        yield run


def _base_for(log: "Log", batch: Batch) -> int:
    """At the log's end even when compaction left a gap before the batch: recovery takes a gap there for a loss."""
    is_near = batch.last_offset - log.end_offset <= RELATIVE_OFFSET_MAX
    return log.end_offset if is_near else batch.base_offset


def _is_due(log: "Log", batch: Batch, size_before: int) -> bool:
    """Whether the batch needs a new segment, if so many bytes go into the active one before it."""
    if log.active.size == 0 and size_before:
        return size_before + batch.size > log.settings.segment_bytes
    return must_roll(
        log.active,
        log.settings,
        size=size_before + batch.size,
        last_offset=batch.last_offset,
        max_timestamp=batch.max_timestamp,
        now_ms=log.clock.wall_ms(),
    )


def _append_run(log: "Log", run: list[Batch]) -> None:
    log.active.append_run(run, interval=log.settings.index_interval_bytes)
    log.end_offset = run[-1].last_offset + 1
    for batch in run:
        if batch.leader_epoch > log.epochs.latest:
            log.epochs.assign(batch.leader_epoch, batch.base_offset)
        log.take_note(batch, base_offset=batch.base_offset, timestamp=batch.max_timestamp)
