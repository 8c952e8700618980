"""Opens a log, and repairs it after a crash. Blocking.

Removes leftovers of interrupted work, verifies segments from the recovery point on, rebuilds their indexes (.index,
.timeindex, .txnindex) from the batches, cuts a torn tail, and rebuilds producers and epochs. Sealed segments before the
recovery point are not read: `Segment` rebuilds their indexes if they turn out to be damaged.
"""

import logging
from collections.abc import Sequence
from itertools import zip_longest

from ottla.storage.core import names
from ottla.storage.core.producers import Producers
from ottla.storage.core.removals import Removals
from ottla.storage.core.settings import LogSettings
from ottla.storage.directories.files import FileCache
from ottla.storage.log import snapshots
from ottla.storage.log.durability import Durability
from ottla.storage.log.epochs import EPOCHS_FILE, LeaderEpochs
from ottla.storage.log.replay import producers_at, replay, reset_to_snapshot
from ottla.storage.log.scan import scan
from ottla.storage.log.segment import Segment
from ottla.storage.log.segments import new_segment
from ottla.system import System
from ottla.wire.batch import Batch, crc_matches

__all__ = ["Recovery"]

log = logging.getLogger("ottla.storage")


class Recovery:
    """Opens one log: after `run`, the fields are the parts of the log."""

    def __init__(self, folder: str, *, settings: LogSettings, system: System, files: FileCache) -> None:
        self.folder = folder
        self.topic_partition = folder.rstrip("/").rpartition("/")[2]
        self.segments: tuple[Segment, ...] = ()
        self.start_offset = 0
        self.end_offset = 0
        self.producers = Producers(self.topic_partition)
        self.epochs = LeaderEpochs(f"{folder}/{EPOCHS_FILE}")
        self.removals = Removals()
        self._is_new = not system.disk.exists(folder)
        self.durability = Durability(folder, system.disk, is_new=self._is_new)
        self._settings = settings
        self._system = system
        self._disk = system.disk
        self._files = files

    def run(self, *, clean: bool, log_start: int, recovery_point: int, cleaned_to: int | None) -> None:
        """`cleaned_to`: the end of the clean part, from the cleaner's checkpoint; None without a checkpoint."""
        if self._is_new:
            self._disk.make_folder(self.folder)
        found = self._finish_swaps(self._names())
        bases = self._segment_bases(found)
        self._load_epochs()
        verified_from = None if clean else _first_unverified(bases, recovery_point)
        if verified_from is not None:
            self.epochs.truncate_end(verified_from)  # later epochs are read from the batches
        self.segments = self._open_segments(bases, verified_from=verified_from, cleaned_to=cleaned_to)
        if self.segments and self.segments[-1].next_offset < log_start:  # all of it was deleted
            self._delete(self.segments)
            self.segments = ()
        if not self.segments:
            self.segments = (self._first_segment(log_start),)
            verified_from = None
        self._bound(log_start)
        flushed = self.end_offset if clean else min(recovery_point, self.end_offset)
        self.durability.recovered(flushed_offset=flushed, promised_offset=recovery_point)
        self._remove_stray_snapshots(found, clean=clean)
        if verified_from is None:
            self._load_producers()
        else:
            self._rebuild_producers(verified_from)

    def _bound(self, log_start: int) -> None:
        """Set the log's start and end, and limit its epochs to that range."""
        self.end_offset = self.segments[-1].next_offset
        self.start_offset = max(log_start, self.segments[0].base_offset)
        if self.epochs.latest < 0:
            self._find_epochs()
        self.epochs.truncate_end(self.end_offset)
        self.epochs.truncate_start(self.start_offset)

    # files

    def _names(self) -> list[str]:
        """The names of its files. A folder with a file's name is skipped."""
        found, skipped = self._disk.names(self.folder), []
        for name in found:
            if names.offset_of(name) is not None and self._disk.is_folder(f"{self.folder}/{name}"):
                log.warning("%s/%s is skipped: it is named like a file of the log, and is a folder", self.folder, name)
                skipped.append(name)
        return [name for name in found if name not in skipped] if skipped else found

    def _finish_swaps(self, found: Sequence[str]) -> Sequence[str]:
        """Remove unfinished (.cleaned) and deleted (.deleted) files, rename finished .swap files. Returns the remaining
        names."""
        disk, folder = self._disk, self.folder
        leftovers = {name: offset for name in found if (offset := _leftover(name)) is not None}
        if not leftovers:
            return found
        cleaned = [offset for name, offset in leftovers.items() if name.endswith(names.CLEANED)]
        for name, offset in leftovers.items():
            # Beside a .cleaned file of the same offset a .swap is incomplete, and the old segments are complete.
            if not name.endswith(names.SWAP) or offset >= min(cleaned, default=offset + 1):
                disk.remove(f"{folder}/{name}")
        swaps = [name for name in disk.names(folder) if name in leftovers]
        for name in swaps:
            if name.endswith(names.LOG + names.SWAP):
                self._remove_covered(leftovers[name])
        for name in swaps:
            disk.rename(f"{folder}/{name}", f"{folder}/{name.removesuffix(names.SWAP)}")
        disk.sync_folder(folder)
        return self._names()

    def _remove_covered(self, base: int) -> None:
        """Remove the segments that a .swap file replaces: those with a base offset in its range."""
        swap = Segment(self.folder, base, files=self._files, created_ms=0, suffix=names.SWAP)
        swap.rebuild(interval=self._settings.index_interval_bytes, verify=False)
        self._files.forget(swap.handle)
        end = max(swap.next_offset, base + 1)
        for name in self._disk.names(self.folder):
            offset = names.offset_of(name)
            if offset is not None and base <= offset < end and not name.endswith(names.SWAP):
                self._disk.remove(f"{self.folder}/{name}")

    def _segment_bases(self, found: Sequence[str]) -> list[int]:
        """The base offsets of the segments; an index without a log file is removed."""
        bases = {offset for name in found if name.endswith(names.LOG) and (offset := names.offset_of(name)) is not None}
        for name in found:
            if name.endswith((names.INDEX, names.TIME_INDEX, names.TXN_INDEX)) and names.offset_of(name) not in bases:
                self._disk.remove(f"{self.folder}/{name}")
        return sorted(bases)

    def _delete(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            segment.mark_deleted()
        due_ms = self._system.clock.wall_ms() + self._settings.file_delete_delay_ms
        for segment in segments:
            self.removals.add(segment.paths(), due_ms=due_ms)

    # segments

    def _first_segment(self, base: int) -> Segment:
        segment = new_segment(self.folder, base, settings=self._settings, system=self._system, files=self._files)
        self.durability.folder_changed()
        segment.create()
        return segment

    def _open_segments(
        self, bases: Sequence[int], *, verified_from: int | None, cleaned_to: int | None
    ) -> tuple[Segment, ...]:
        """All segments; those from `verified_from` on are verified, and the first damaged one is the last."""
        now_ms = self._system.clock.wall_ms()
        segments = [Segment(self.folder, base, files=self._files, created_ms=now_ms) for base in bases]
        sound: list[Segment] = []
        for segment, next_base in zip_longest(segments, bases[1:]):
            is_trusted = verified_from is None or segment.base_offset < verified_from
            may_gap = self._may_end_in_a_gap(segment, cleaned_to)
            if not (is_trusted and segment.adopt(next_offset=next_base)) and not self._verify(
                segment, next_base, may_gap
            ):
                later = segments[len(sound) + 1 :]
                if later:
                    log.warning(
                        "%s: %d segments from offset %d on are set aside (.deleted) and removed after "
                        "file.delete.delay.ms: what stands before them ends at %d",
                        *(self.topic_partition, len(later), later[0].base_offset, segment.next_offset),
                    )
                self._delete(later)
                return (*sound, segment)
            sound.append(segment)
        return tuple(sound)

    def _may_end_in_a_gap(self, segment: Segment, cleaned_to: int | None) -> bool:
        """Whether compaction may have removed the segment's last batches.

        Segments swapped in since the checkpoint are below the recovery point and are not verified.
        """
        if "compact" not in self._settings.cleanup_policies:
            return False
        return cleaned_to is None or segment.base_offset < cleaned_to

    def _verify(self, segment: Segment, next_base: int | None, may_gap: bool) -> bool:
        """Rebuild from the data; False if a tail had to be cut or is missing."""
        interval = self._settings.index_interval_bytes
        if left_over := segment.rebuild(interval=interval, verify=True, below=next_base, seen=self._note_epoch):
            self._report_cut(segment, left_over)
            segment.opened().file.truncate(segment.size)
            return False
        if next_base is not None:
            if segment.next_offset < next_base and not may_gap:
                return False  # a power loss removed its last batches: there is a gap before the next one
            segment.seal_at(next_base)
        return True

    def _report_cut(self, segment: Segment, left_over: int) -> None:
        """Log what is cut, as far as the bytes show it."""
        end, why = segment.next_offset, "there is no whole batch"
        file, size = segment.opened().file, segment.size
        for position, batch in scan(file, start=size, end=size + left_over, whole=True):
            if position == size:
                why = "the batch there does not follow the previous one"
                why = why if crc_matches(batch) else "the checksum of the batch there is wrong"
            if batch.base_offset < end or batch.last_offset_delta < 0:
                break
            end = batch.last_offset + 1
        log.warning(
            "%s: cut at offset %d, byte %d of %s: %s; %d bytes are gone, with batches up to offset %d",
            *(self.topic_partition, segment.next_offset, size, segment.path(names.LOG), why, left_over, end),
        )

    # epochs

    def _load_epochs(self) -> None:
        try:
            self.epochs = LeaderEpochs.load(self._disk, self.epochs.path)
        except ValueError:
            self.epochs = LeaderEpochs(self.epochs.path)

    def _find_epochs(self) -> None:
        """Read the epochs from the batches if the checkpoint is lost."""
        for segment in self.segments:
            for _, batch in segment.batches():
                self._note_epoch(batch)

    def _note_epoch(self, batch: Batch) -> None:
        if batch.leader_epoch > self.epochs.latest:
            self.epochs.assign(batch.leader_epoch, batch.base_offset)

    # producers

    def _remove_stray_snapshots(self, found: Sequence[str], *, clean: bool) -> None:
        """Keep snapshots at the start of a segment, and the one at the end after a clean stop."""
        kept = {segment.base_offset for segment in self.segments} | ({self.end_offset} if clean else set())
        for offset in snapshots.snapshot_offsets(found):
            if offset not in kept:
                self._disk.remove(snapshots.path(self.folder, offset))

    def _load_producers(self) -> None:
        self.producers, snapshot = producers_at(
            self.topic_partition,
            self.segments,
            start=self.start_offset,
            end=self.end_offset,
            now_ms=self._system.clock.wall_ms(),
            expiry_ms=self._settings.producer_expiry_ms,
        )
        self._remove_newer_snapshots(snapshot)

    def _rebuild_producers(self, verified_from: int) -> None:
        """The same from an earlier snapshot, for the aborted transactions and snapshots of verified segments."""
        snapshot = reset_to_snapshot(
            self.producers,
            self.segments,
            start=self.start_offset,
            end=verified_from,
            now_ms=self._system.clock.wall_ms(),
            expiry_ms=self._settings.producer_expiry_ms,
        )
        self._remove_newer_snapshots(snapshot)
        for segment, ended in replay(self.producers, self.segments, end=self.end_offset):
            if segment.base_offset < verified_from:
                continue
            if ended is None:
                self.producers.advance_to(segment.base_offset)
                self.durability.rolled(self.producers, sealed_bytes=segment.size, start_offset=self.start_offset)
            elif ended.aborted:
                segment.found_aborted(ended.for_index())
        for segment in self.segments:
            if segment.base_offset >= verified_from:
                segment.write_aborted()

    def _remove_newer_snapshots(self, offset: int) -> None:
        """Remove snapshots after the one that was used."""
        self.durability.newest_snapshot_is(max(offset, self.start_offset))
        snapshots.remove_newer(self._disk, self.folder, offset)


def _leftover(name: str) -> int | None:
    return names.offset_of(name) if name.endswith((names.CLEANED, names.DELETED, names.SWAP)) else None


def _first_unverified(bases: Sequence[int], recovery_point: int) -> int:
    """The base offset of the first segment that must be verified."""
    following = [*bases[1:], None]
    doubted = (base for base, after in zip(bases, following, strict=False) if after is None or after > recovery_point)
    return next(doubted, 0)
