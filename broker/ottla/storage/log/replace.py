"""Swaps compacted segments in. A crash at any point leaves either the old segments or the new one.

- `.cleaned`: being written; removed at the next start.
- `.swap`: complete and durable; at the next start it replaces every segment that it covers.
- no suffix: in use; the old ones are renamed to `.deleted`.

`exchange` renames the files in a thread, then `Log.replaced` changes the log on the loop; `log.changing` is held over
both. Readers continue with the old segments meanwhile, under their new names.
"""

from collections.abc import Sequence

from ottla.storage.core import names
from ottla.storage.log.segment import Segment

__all__ = ["exchange"]


def exchange(old: Sequence[Segment], new_base: int, *, created_ms: int) -> Segment:
    """Replace the files of these adjacent segments by `<new_base>.log.cleaned`; returns its segment. Blocking."""
    first = old[0]
    assert new_base == first.base_offset, "a .swap file replaces segments from its own offset on"
    new = Segment(first.folder, new_base, files=first.files, created_ms=created_ms, suffix=names.CLEANED)
    # The next segment starts where the old ones ended, even if the last records were removed.
    new.adopt(next_offset=old[-1].next_offset)
    new.rename(names.SWAP)
    new.disk.sync_folder(new.folder)
    first.mark_deleted(keep_snapshot=True)
    for segment in old[1:]:
        segment.mark_deleted()
    new.rename("")
    return new
