"""The leader's view of one partition's replicas. Pure.

Invariant: the high watermark never falls, and never passes the end of any in-sync replica. It stands still while the
in-sync set is smaller than `min.insync.replicas` (KIP-966).
"""

from collections.abc import Iterable

__all__ = ["LeaderView"]


class LeaderView:
    def __init__(self, *, node_id: int, isr: Iterable[int], isr_size_min: int, high_watermark: int, end: int) -> None:
        self._node_id = node_id
        self.isr = frozenset(isr)
        self.isr_size_min = isr_size_min
        self.high_watermark = high_watermark
        self._ends: dict[int, int] = {node_id: end}

    @property
    def enough_in_sync(self) -> bool:
        return len(self.isr) >= self.isr_size_min

    def advance(self, replica: int, end: int) -> bool:
        """Note how far a replica has come; True when the high watermark moved."""
        self._ends[replica] = end
        if len(self.isr) == 1 and replica == self._node_id:
            lowest = end
        else:
            lowest = min(self._ends.get(member, 0) for member in self.isr)
        if lowest <= self.high_watermark or not self.enough_in_sync:
            return False
        self.high_watermark = lowest
        return True

    def replace_isr(self, isr: Iterable[int]) -> bool:
        """A new in-sync set was committed; True when that moved the high watermark."""
        self.isr = frozenset(isr)
        return self.advance(self._node_id, self._ends[self._node_id])
