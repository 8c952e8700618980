"""Swapping compacted segments in. A crash at any point leaves either the old segments or the new one.

.cleaned   being written; dropped at the next start
.swap      complete and durable; at the next start it takes the place of every segment that it covers
(none)     in its place, the old ones renamed to .deleted
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.storage import names, retention
from ottla.storage.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log import Log

__all__ = ["prepare", "replace"]


def prepare(log: "Log", base_offset: int) -> Segment:
    """The segment of `<base_offset>.log.cleaned`, indexed and durable. Blocking; in a thread."""
    new = Segment(log.folder, base_offset, files=log.files, created_ms=log.clock.wall_ms(), suffix=names.CLEANED)
    lost_bytes = new.rebuild(interval=log.settings.index_interval_bytes, verify=False)
    assert not lost_bytes, f"{new} ends with {lost_bytes} bytes that are no batch"
    new.seal()
    new.sync()
    return new


def replace(log: "Log", old: Sequence[Segment], new: Segment) -> None:
    """Put `new` in the place of these neighbours, none of them active. On the loop."""
    first = log.segments.index(old[0])
    assert log.segments[first : first + len(old)] == tuple(old) and log.active not in old, old
    assert new.base_offset == old[0].base_offset, "a .swap file stands for what begins at its own offset"
    new.rename(names.SWAP)
    log.disk.sync_folder(log.folder)
    retention.doom(log, old[:1], keep_snapshots=True)
    retention.doom(log, old[1:])
    new.rename("")
    new.next_offset = old[-1].next_offset  # where the next segment begins, even if the last records are gone
    log.segments = (*log.segments[:first], new, *log.segments[first + len(old) :])
    log.keep_index(new)
