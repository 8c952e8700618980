"""When Python's collector works. All threads stand still while it does, so that it gets little to do each time.

A request leaves no cycles behind, and tests hold that for connections, answers and calls between the loops. The
collector is there for the few that remain: it looks at young objects only. A collection of all objects takes 0.1 to 0.4
seconds per million, so that it is no part of any work: it is made when their memory has doubled, and grown by hundreds
of megabytes. Cycles that got old never take more than that.
"""

import asyncio
import gc
import sys
from collections.abc import Callable

__all__ = ["FullCollections", "settle_objects"]

# The youngest, made since the last collection. As garbage they take 3 to 5 ms: 50,000 took 50 to 90 ms.
YOUNG_OBJECTS_MAX = 3_000
# Those that outlived one collection are looked at once more, with the fourth after it.
YOUNG_COLLECTIONS_MAX = 3
NEVER = 1_000_000_000
CHECK_SECONDS = 10.0
GROWTH_BLOCKS_MIN = 4_000_000  # of objects, 250 to 400 MB


def settle_objects() -> None:
    """What lives as long as the node need not be looked at by any collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, YOUNG_COLLECTIONS_MAX, NEVER)


class FullCollections:
    """Begun on a loop, which looks every CHECK_SECONDS how many blocks of memory objects take."""

    def __init__(
        self, *, blocks: Callable[[], int] = sys.getallocatedblocks, collect: Callable[[], object] = gc.collect
    ) -> None:
        self._blocks = blocks
        self._collect = collect
        self._settled_blocks = blocks()

    def start(self) -> None:
        asyncio.get_running_loop().call_later(CHECK_SECONDS, self._again)

    def _again(self) -> None:
        self.check()
        self.start()

    def check(self) -> None:
        if self._blocks() >= self._settled_blocks + max(self._settled_blocks, GROWTH_BLOCKS_MIN):
            self._collect()
            self._settled_blocks = self._blocks()
