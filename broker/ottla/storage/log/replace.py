"""Swapping compacted segments in. A crash at any point leaves either the old segments or the new one.

- `.cleaned`: being written; dropped at the next start.
- `.swap`: complete and durable; at the next start it takes the place of every segment that it covers.
- no suffix: in its place, and the old ones are renamed to `.deleted`.

`exchange` does this to the files in a thread, then `Log.replaced` to the log on the loop; `log.changing` is held from
the first to the second. Readers go on with the old segments meanwhile, by their new names.
"""

from collections.abc import Sequence

from ottla.storage.core import names
from ottla.storage.log.segment import Segment

__all__ = ["exchange"]


def exchange(old: Sequence[Segment], new_base: int, *, created_ms: int) -> Segment:
    """The segment of `<new_base>.log.cleaned`, its files now in the place of these neighbours'. Blocking."""
    first = old[0]
    assert new_base == first.base_offset, "a .swap file stands for what begins at its own offset"
    new = Segment(first.folder, new_base, files=first.files, created_ms=created_ms, suffix=names.CLEANED)
    # The next segment goes on from where the old ones ended, even if the last records are gone.
    new.adopt(next_offset=old[-1].next_offset)
    new.rename(names.SWAP)
    new.disk.sync_folder(new.folder)
    first.mark_deleted(keep_snapshot=True)
    for segment in old[1:]:
        segment.mark_deleted()
    new.rename("")
    return new
