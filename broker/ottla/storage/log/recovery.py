"""Opening a log: leftovers of interrupted work, verification after an unclean stop, producers and epochs. Blocking."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from ottla.storage.core import names
from ottla.storage.core.producers import CompletedTransaction, Producers
from ottla.storage.log import retention, snapshots
from ottla.storage.log.epochs import LeaderEpochs
from ottla.storage.log.segment import Segment
from ottla.wire.batch import Batch

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

__all__ = ["NO_SNAPSHOT", "load", "producers_at"]

NO_SNAPSHOT = -1


def load(log: "Log", *, clean: bool, log_start: int, recovery_point: int, cleaned_to: int | None) -> None:
    """`cleaned_to`: compaction has been up to there, as its checkpoint says; None when there is no checkpoint."""
    if not log.disk.exists(log.folder):
        log.disk.make_folder(log.folder)
        log.is_new = True
    found = _finish_swaps(log, log.disk.names(log.folder))
    bases = _segment_bases(log, found)
    _load_epochs(log)
    verified_from = None if clean else _first_doubted(bases, recovery_point)
    if verified_from is not None:
        log.epochs.truncate_end(verified_from)  # the batches themselves tell from there on
    log.segments = tuple(_open_segments(log, bases, verified_from=verified_from, cleaned_to=cleaned_to))
    if log.segments and log.segments[-1].next_offset < log_start:  # all of it was deleted already
        retention.doom(log, log.segments)
        log.segments = ()
    if not log.segments:
        log.segments = (log.new_segment(log_start),)
        verified_from = None
    log.active = log.segments[-1]
    log.end_offset = log.active.next_offset
    log.start_offset = max(log_start, log.segments[0].base_offset)
    log.flushed_offset = log.end_offset if clean else min(recovery_point, log.end_offset)
    log.promised_offset = max(log.flushed_offset, recovery_point)
    if log.epochs.latest < 0:
        _find_epochs(log)
    log.epochs.truncate_end(log.end_offset)
    log.epochs.truncate_start(log.start_offset)
    _remove_stray_snapshots(log, found, clean=clean)
    if verified_from is None:
        log.producers, snapshot = producers_at(log, log.end_offset)
        _trust_snapshot(log, snapshot)
    else:
        _rebuild_aborted(log, verified_from)


def _finish_swaps(log: "Log", found: Sequence[str]) -> Sequence[str]:
    """Drop what was unfinished (.cleaned) or unwanted (.deleted), put a finished .swap in its place; the names left."""
    disk, folder = log.disk, log.folder
    leftovers = {name: offset for name in found if (offset := _leftover(name)) is not None}
    if not leftovers:
        return found
    cleaned = [offset for name, offset in leftovers.items() if name.endswith(names.CLEANED)]
    for name, offset in leftovers.items():
        # Beside a .cleaned file of the same offset the .swap is not complete, and the old segments still are.
        if not name.endswith(names.SWAP) or offset >= min(cleaned, default=offset + 1):
            disk.remove(f"{folder}/{name}")
    swaps = [name for name in disk.names(folder) if name in leftovers]
    for name in swaps:
        if name.endswith(names.LOG + names.SWAP):
            _remove_covered(log, leftovers[name])
    for name in swaps:
        disk.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(names.SWAP)}")
    disk.sync_folder(folder)
    return disk.names(folder)


def _leftover(name: str) -> int | None:
    return names.offset_of(name) if name.endswith((names.CLEANED, names.DELETED, names.SWAP)) else None


def _remove_covered(log: "Log", base: int) -> None:
    """Remove the segments that a .swap file replaces: those that begin where its offsets are."""
    swap = Segment(log.folder, base, files=log.files, created_ms=0, suffix=names.SWAP)
    swap.rebuild(interval=log.settings.index_interval_bytes, verify=False)
    log.files.forget(swap.handle)
    for name in log.disk.names(log.folder):
        offset = names.offset_of(name)
        if offset is not None and base <= offset < max(swap.next_offset, base + 1) and not name.endswith(names.SWAP):
            log.disk.remove(f"{log.folder}/{name}")


def _segment_bases(log: "Log", found: Sequence[str]) -> list[int]:
    """Where segments begin; an index without a log file is removed."""
    bases = {offset for name in found if name.endswith(names.LOG) and (offset := names.offset_of(name)) is not None}
    for name in found:
        if name.endswith((names.INDEX, names.TIME_INDEX, names.TXN_INDEX)) and names.offset_of(name) not in bases:
            log.disk.remove(f"{log.folder}/{name}")
    return sorted(bases)


def _open_segments(
    log: "Log", bases: Sequence[int], *, verified_from: int | None, cleaned_to: int | None
) -> list[Segment]:
    """All segments; those from `verified_from` on are verified, and the first unsound one is the last."""
    now_ms = log.clock.wall_ms()
    segments = [Segment(log.folder, base, files=log.files, created_ms=now_ms) for base in bases]
    sound: list[Segment] = []
    for segment, next_base in zip_longest(segments, bases[1:]):
        is_trusted = verified_from is None or segment.base_offset < verified_from
        may_gap = _may_end_in_a_gap(log, segment, cleaned_to)
        if not (is_trusted and segment.adopt(next_offset=next_base)) and not _verify(log, segment, next_base, may_gap):
            retention.doom(log, segments[len(sound) + 1 :])
            return [*sound, segment]
        sound.append(segment)
    return sound


def _first_doubted(bases: Sequence[int], recovery_point: int) -> int:
    """Where the first segment begins that must be verified."""
    following = [*bases[1:], None]
    doubted = (base for base, after in zip(bases, following, strict=False) if after is None or after > recovery_point)
    return next(doubted, 0)


def _may_end_in_a_gap(log: "Log", segment: Segment, cleaned_to: int | None) -> bool:
    """Whether compaction may have taken the segment's last batches.

    What was swapped in since the checkpoint was written lies below the recovery point, and is not verified.
    """
    if "compact" not in log.settings.cleanup_policies:
        return False
    return cleaned_to is None or segment.base_offset < cleaned_to


def _verify(log: "Log", segment: Segment, next_base: int | None, may_gap: bool) -> bool:
    """Rebuild from the data; False when a tail had to be cut off, or is missing."""

    def note_epoch(batch: Batch) -> None:
        if batch.leader_epoch > log.epochs.latest:
            log.epochs.assign(batch.leader_epoch, batch.base_offset)

    interval = log.settings.index_interval_bytes
    if segment.rebuild(interval=interval, verify=True, below=next_base, seen=note_epoch):
        segment.opened().file.truncate(segment.size)
        return False
    if next_base is not None:
        if segment.next_offset < next_base and not may_gap:
            return False  # a power loss took its end, at the border of a batch; what follows has a hole before it
        segment.seal()
        segment.unload()
        segment.next_offset = next_base
    return True


def _load_epochs(log: "Log") -> None:
    try:
        log.epochs = LeaderEpochs.load(log.disk, log.epochs.path)
    except ValueError:
        log.epochs = LeaderEpochs(log.epochs.path)


def _find_epochs(log: "Log") -> None:
    """From the batches themselves, when the checkpoint is lost."""
    for segment in log.segments:
        for _, batch in segment.batches():
            if batch.leader_epoch > log.epochs.latest:
                log.epochs.assign(batch.leader_epoch, batch.base_offset)


def _remove_stray_snapshots(log: "Log", found: Sequence[str], *, clean: bool) -> None:
    """Keep those that a segment begins with, and the one that a clean stop leaves at the end."""
    kept = {segment.base_offset for segment in log.segments} | ({log.end_offset} if clean else set())
    for offset in snapshots.snapshot_offsets(found):
        if offset not in kept:
            log.disk.remove(snapshots.path(log.folder, offset))


def producers_at(log: "Log", end: int) -> tuple[Producers, int]:
    """The producers as they are where the log ends, or would end if it was cut there, and the snapshot's offset from
    which they were brought there (NO_SNAPSHOT: from the log's start). Changes nothing, so any thread may ask."""
    producers = Producers(log.topic_partition)
    snapshot = _begin(log, producers, start=min(log.start_offset, end), end=end)
    for _ in _replay(log, producers, end=end):
        pass
    return producers, snapshot


def _trust_snapshot(log: "Log", offset: int) -> None:
    """No snapshot beyond the one that served is of any use."""
    log.snapshot_offset = max(offset, log.start_offset)
    snapshots.remove_newer(log.disk, log.folder, offset)


def _rebuild_aborted(log: "Log", verified_from: int) -> None:
    """The same from further back, for the aborted transactions and snapshots of the segments that were verified."""
    _trust_snapshot(log, _begin(log, log.producers, start=log.start_offset, end=verified_from))
    for segment, ended in _replay(log, log.producers, end=log.end_offset):
        if segment.base_offset < verified_from:
            continue
        if ended is None:
            log.producers.end_offset = segment.base_offset
            log.write_snapshot()
        elif ended.aborted:
            segment.aborted.append(ended.for_index())
    for segment in log.segments:
        if segment.base_offset >= verified_from:
            segment.write_aborted()


def _begin(log: "Log", producers: Producers, *, start: int, end: int) -> int:
    """Put the producers back to the newest snapshot between these offsets; its offset, or NO_SNAPSHOT."""
    found = snapshots.read_newest(log.disk, log.folder, start=start, end=end)
    offset, known = found or (start, [])
    producers.reset(known, end_offset=offset)
    producers.expire(log.clock.wall_ms(), log.settings.producer_expiry_ms)
    return offset if found else NO_SNAPSHOT


def _replay(log: "Log", producers: Producers, *, end: int) -> Iterator[tuple[Segment, CompletedTransaction | None]]:
    """Each segment as it begins, and each transaction that ended in it, while the producers are brought to `end`."""
    offset = producers.end_offset
    for segment in log.segments_from(offset):
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
    producers.end_offset = end
