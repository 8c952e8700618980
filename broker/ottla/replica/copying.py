"""Applies a leader's messages to a follower's copy. On the event loop; a truncation awaits threads.

A message that does not match the copy is refused (KafkaError), and the follower states its position again. The copy is
truncated only when the leader says that the logs diverge, or that its own log starts later.
"""

import logging
from collections.abc import Callable
from functools import partial

from ottla.errors import Code, KafkaError
from ottla.ports import Buffer
from ottla.replica.partition import Partition
from ottla.wire.batch import iterate
from ottla.wire.replication import Diverged, Entry, Follow

__all__ = ["append", "cut", "position", "start_over", "take_watermark"]

log = logging.getLogger("ottla.replica")


def position(partition: Partition, slot: int) -> Follow:
    """The copy's position, for the leader."""
    copy = partition.log
    return Follow(
        slot=slot,
        topic_id=partition.topic_id.bytes,
        partition=partition.index,
        leader_epoch=partition.leader_epoch,
        end=copy.end_offset,
        last_epoch=copy.epochs.latest,
        start=copy.start_offset,
    )


def append(partition: Partition, entry: Entry, batches: Buffer) -> None:
    """The leader's batches from `entry.base_offset` on."""
    end = partition.log.end_offset
    if entry.base_offset != end or entry.leader_epoch != partition.leader_epoch:
        raise KafkaError(
            Code.corrupt_message,
            f"batches of epoch {entry.leader_epoch} at {entry.base_offset} do not fit {partition}, which ends at {end} "
            f"in epoch {partition.leader_epoch}",
        )
    is_empty = partition.log.start_offset == end
    if is_empty:
        _begin_with_whole_batch(partition, batches)
    partition.append_copied(batches)
    if is_empty:
        partition.begin_at(end)
    take_watermark(partition, high_watermark=entry.high_watermark, start=entry.start)


def _begin_with_whole_batch(partition: Partition, batches: Buffer) -> None:
    """An empty copy may start inside a batch, where the leader's log starts; the file has the whole batch."""
    first = next(iterate(batches), None)
    end = partition.log.end_offset
    if first is not None and first.base_offset < end <= first.last_offset:
        partition.log.truncate_fully(first.base_offset)


def take_watermark(partition: Partition, *, high_watermark: int, start: int) -> None:
    partition.follow_watermark(high_watermark)
    partition.begin_at(min(start, partition.high_watermark))


async def cut(partition: Partition, diverged: Diverged) -> bool:
    """Truncate records that the leader does not have (KIP-101, KIP-279). False when nothing was truncated."""
    copy, end = partition.log, partition.log.end_offset
    target = min(_common_end(partition, diverged), end)
    if target < partition.high_watermark:
        log.warning("%s is cut to %d, below its high watermark %d", partition, target, partition.high_watermark)
    if not await partition.truncate(partial(copy.plan_truncation, target), is_wanted=_while_following(partition)):
        return False
    log.info(
        "%s is cut from %d to %d: the leader's epoch %d ends at %d",
        partition,
        end,
        copy.end_offset,
        diverged.epoch,
        diverged.end,
    )
    return True


def _while_following(partition: Partition) -> Callable[[], bool]:
    """Whether the partition still follows the same leader in the same epoch."""
    epoch = partition.leader_epoch
    return lambda: not partition.is_leader and partition.leader_epoch == epoch


def _common_end(partition: Partition, diverged: Diverged) -> int:
    if diverged.end < 0:
        return partition.high_watermark
    if diverged.epoch < 0:
        return diverged.end
    epoch, end = partition.log.epochs.end_offset_for(diverged.epoch, partition.log.end_offset)
    if epoch < 0:
        return diverged.end
    return min(end, diverged.end) if epoch == diverged.epoch else end


async def start_over(partition: Partition, start: int) -> bool:
    """The leader's log starts after this one's end: drop everything. False when nothing was dropped."""
    copy = partition.log
    if start <= partition.log.end_offset:
        raise KafkaError(
            Code.offset_out_of_range,
            f"{partition} ends at {partition.log.end_offset} and need not start over at {start}",
        )
    log.info(
        "%s starts over at %d, where the leader's log begins; it ended at %d",
        partition,
        start,
        partition.log.end_offset,
    )
    return await partition.truncate(partial(copy.plan_fresh_start, start), is_wanted=_while_following(partition))
