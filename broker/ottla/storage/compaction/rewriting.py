"""Rewrites the segments of a compacted log, in the worker process.

A cleaning is `index` (the last offset of every key in the dirty part), then `rewrite` once for each group of segments,
which writes `<base>.log.cleaned` and its indexes for the broker to swap in, then `forget`. Between these calls the
worker process keeps the offset map, which can be large; if the process was replaced meanwhile, `rewrite` raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ottla.errors import Code, KafkaError
from ottla.ports import Disk
from ottla.storage.core import names
from ottla.storage.core.aborted import AbortedTransaction
from ottla.storage.core.batch_filter import BatchFilter, LastWritten
from ottla.storage.core.cleaned_transactions import CleanedTransactions
from ottla.storage.core.offset_map import KEYS_MAX, OffsetMap
from ottla.storage.directories.files import FileCache
from ottla.storage.log import aborted_index
from ottla.storage.log.scan import scan
from ottla.storage.log.segment import Segment
from ottla.storage.workers.worker import WorkerDied
from ottla.wire.batch import Batch, parse

__all__ = ["Cleaning", "Rewritten", "forget", "group", "index", "rewrite"]

OPEN_FILES_MAX = 8
RELATIVE_OFFSET_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """One cleaning of one log: segments below `upto` may be rewritten; the offset map starts at `first_dirty`."""

    folder: str
    segments: Sequence[tuple[int, int]]  # base offset and bytes, of all segments below `upto`
    first_dirty: int
    upto: int
    now_ms: int
    delete_retention_ms: int
    index_interval_bytes: int
    producers: Mapping[int, LastWritten]
    aborted: Sequence[AbortedTransaction]
    keys_max: int = KEYS_MAX

    @property
    def identity(self) -> tuple[str, int, int, int]:
        return self.folder, self.first_dirty, self.upto, self.now_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A group's result: `size` bytes in the files `<base_offset>.*.cleaned`, and the transactions seen so far."""

    base_offset: int
    size: int
    changed: bool  # whether anything but the number of segments differs
    transactions: CleanedTransactions


_indexed: tuple[tuple[str, int, int, int], OffsetMap] | None = None


def index(disk: Disk, cleaning: Cleaning) -> int:
    """Build the offset map until it is full. Returns the first offset that it does not cover."""
    global _indexed
    _indexed = None  # before the next one grows
    found = OffsetMap(start=cleaning.first_dirty, keys_max=cleaning.keys_max)
    transactions = CleanedTransactions(one for one in cleaning.aborted if one.last_offset >= cleaning.first_dirty)
    dirty = [one for one, end in _with_ends(cleaning.segments, cleaning.upto) if end > cleaning.first_dirty]
    if all(_index_segment(disk, cleaning, one, found, transactions) for one in dirty):
        found.reach(cleaning.upto - 1)  # the last offsets may be missing
    _indexed = cleaning.identity, found
    return found.latest + 1


def _with_ends(segments: Sequence[tuple[int, int]], upto: int) -> list[tuple[tuple[int, int], int]]:
    """Each segment with the base offset of the next one."""
    ends = [*(base for base, _ in segments), upto]
    return list(zip(segments, ends[1:], strict=True))


def _index_segment(
    disk: Disk, cleaning: Cleaning, segment: tuple[int, int], found: OffsetMap, transactions: CleanedTransactions
) -> bool:
    """False when the map is full."""
    for batch in _batches(disk, cleaning.folder, *segment):
        if not transactions.is_discardable(batch) and not batch.is_control and batch.last_offset >= found.start:
            if not found.has_room(batch):
                return False
            found.add(batch)
        found.reach(batch.last_offset)
    return True


def _batches(disk: Disk, folder: str, base_offset: int, size: int) -> Iterator[Batch]:
    """All batches of a segment. An incomplete batch is an error: a scan that ended early would lose data."""
    path = f"{folder}/{names.name(base_offset, names.LOG)}"
    file = disk.open(path)
    try:
        end = 0
        for position, batch in scan(file, start=0, end=size, whole=True):
            yield batch
            end = position + batch.size
    finally:
        file.close()
    if end != size:
        raise KafkaError(Code.corrupt_message, f"{path} holds no batch at position {end} of {size}")


def rewrite(
    disk: Disk, cleaning: Cleaning, bases: Sequence[int], transactions: CleanedTransactions | None
) -> Rewritten:
    """Write the remaining records of segments `bases` into one. `transactions` is that of the previous group, or
    None."""
    if _indexed is None or _indexed[0] != cleaning.identity:
        raise WorkerDied(f"the worker process was replaced while it cleaned {cleaning.folder}")
    transactions = transactions or CleanedTransactions(cleaning.aborted)
    keep = BatchFilter(
        map=_indexed[1],
        now_ms=cleaning.now_ms,
        delete_retention_ms=cleaning.delete_retention_ms,
        upto=cleaning.upto,
        producers=cleaning.producers,
    )
    cleaned = Segment(
        cleaning.folder,
        bases[0],
        files=FileCache(disk, OPEN_FILES_MAX),
        created_ms=cleaning.now_ms,
        suffix=names.CLEANED,
    )
    for path in cleaned.paths():
        disk.remove(path)
    cleaned.create()
    changed = False
    for base, size in (one for one in cleaning.segments if one[0] in bases):
        for batch in _batches(disk, cleaning.folder, base, size):
            data = keep.apply(batch, transactions)
            changed = changed or data is not batch.data
            if data is not None:
                _append(cleaned, parse(data), interval=cleaning.index_interval_bytes)
    aborted_index.write(disk, cleaned.path(names.TXN_INDEX), transactions.take_retained())
    cleaned.seal()
    cleaned.sync()
    return Rewritten(base_offset=bases[0], size=cleaned.size, changed=changed, transactions=transactions)


def _append(cleaned: Segment, batch: Batch, *, interval: int) -> None:
    cleaned.append(
        [batch.data],
        size=batch.size,
        last_offset=batch.last_offset,
        max_timestamp=batch.max_timestamp,
        interval=interval,
    )


def forget() -> None:
    """Free the offset map."""
    global _indexed
    _indexed = None


def group(segments: Sequence[tuple[int, int]], *, segment_bytes: int, upto: int) -> list[list[int]]:
    """Groups of adjacent segments that fit into one, by base offset: otherwise cleaned segments would stay small.

    Also bounded by the range of relative offsets in an index; the indexes of the parts bound those of the whole.
    """
    groups: list[list[int]] = []
    total = 0
    for (base, size), end in _with_ends(segments, upto):
        fits = groups and total + size <= segment_bytes and end - 1 - groups[-1][0] <= RELATIVE_OFFSET_MAX
        if fits:
            groups[-1].append(base)
            total += size
        else:
            groups.append([base])
            total = size
    return groups
