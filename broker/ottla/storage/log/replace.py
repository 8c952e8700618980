"""Swapping compacted segments in. A crash at any point leaves either the old segments or the new one.

- `.cleaned`: being written; dropped at the next start.
- `.swap`: complete and durable; at the next start it takes the place of every segment that it covers.
- no suffix: in its place, and the old ones are renamed to `.deleted`.

`exchange` does this to the files in a thread, then `take_over` to the log on the loop; `log.changing` is held from the
first to the second. Readers go on with the old segments meanwhile, by their new names.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.storage.core import names
from ottla.storage.log import retention
from ottla.storage.log.segment import Segment

if TYPE_CHECKING:
    from ottla.storage.log.log import Log

__all__ = ["exchange", "take_over"]


def exchange(log: "Log", old: Sequence[Segment], new_base: int) -> Segment:
    """The segment of `<new_base>.log.cleaned`, its files now in the place of these neighbours'. Blocking."""
    assert new_base == old[0].base_offset, "a .swap file stands for what begins at its own offset"
    new = Segment(log.folder, new_base, files=log.files, created_ms=log.clock.wall_ms(), suffix=names.CLEANED)
    # The next segment goes on from where the old ones ended, even if the last records are gone.
    new.adopt(next_offset=old[-1].next_offset)
    new.rename(names.SWAP)
    log.disk.sync_folder(log.folder)
    retention.bury(log, old[0], keep_snapshot=True)
    for segment in old[1:]:
        retention.bury(log, segment)
    new.rename("")
    return new


def take_over(log: "Log", old: Sequence[Segment], new: Segment) -> None:
    """The log has the new segment in the place of these, none of them active."""
    first = log.segments.index(old[0])
    assert log.segments[first : first + len(old)] == tuple(old) and log.active not in old, old
    log.segments = (*log.segments[:first], new, *log.segments[first + len(old) :])
    retention.remove_later(log, old)
    log.folder_changed()
