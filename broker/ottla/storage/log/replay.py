"""Rebuilds a log's producers from its newest snapshot and the batches after it. Blocking; changes no file."""

from collections.abc import Iterator

from ottla.storage.core.producers import CompletedTransaction, Producers
from ottla.storage.log import snapshots
from ottla.storage.log.segment import Segment
from ottla.storage.log.segments import from_offset

__all__ = ["NO_SNAPSHOT", "producers_at", "replay", "reset_to_snapshot"]

NO_SNAPSHOT = -1


def producers_at(
    topic_partition: str, segments: tuple[Segment, ...], *, start: int, end: int, now_ms: int, expiry_ms: int
) -> tuple[Producers, int]:
    """The producers at this end of the log, and the offset of the snapshot they were rebuilt from (NO_SNAPSHOT: from
    the log's start)."""
    producers = Producers(topic_partition)
    snapshot = reset_to_snapshot(
        producers, segments, start=min(start, end), end=end, now_ms=now_ms, expiry_ms=expiry_ms
    )
    for _ in replay(producers, segments, end=end):
        pass
    return producers, snapshot


def reset_to_snapshot(
    producers: Producers, segments: tuple[Segment, ...], *, start: int, end: int, now_ms: int, expiry_ms: int
) -> int:
    """Reset the producers to the newest snapshot between these offsets. Returns its offset, or NO_SNAPSHOT."""
    found = snapshots.read_newest(segments[0].disk, segments[0].folder, start=start, end=end)
    offset, known = found or (start, [])
    producers.reset(known, end_offset=offset)
    producers.expire(now_ms, expiry_ms)
    return offset if found else NO_SNAPSHOT


def replay(
    producers: Producers, segments: tuple[Segment, ...], *, end: int
) -> Iterator[tuple[Segment, CompletedTransaction | None]]:
    """Replays batches up to `end`. Yields each segment at its start, and each transaction that ended in it."""
    offset = producers.end_offset
    for segment in from_offset(segments, offset):
        if segment.base_offset > end:
            break
        yield segment, None
        start = segment.position_of(offset) if offset < end else None
        for _, batch in segment.batches(start[1]) if start else ():
            if batch.base_offset >= end:
                break
            if batch.base_offset >= offset:
                ended = producers.update(batch, base_offset=batch.base_offset, timestamp=batch.max_timestamp)
                if ended is not None:
                    yield segment, ended
    producers.advance_to(end)
