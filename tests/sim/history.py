"""What is committed in one partition, and what of it may be gone: the rules for readers, by the topic's cleanup.

KEEP       everything stays
COMPACT    of every key the latest record stays; offsets do not change; batches are rewritten
RETAIN     old segments go from the beginning (retention.bytes)
DELETE     what DeleteRecords named goes from the beginning, and no more
"""

import uuid
from enum import Enum
from typing import TYPE_CHECKING

from ottla.wire import records
from ottla.wire.batch import Batch

if TYPE_CHECKING:
    from ottla.replica.partition import Partition
    from sim.invariants import Referee

__all__ = ["Cleanup", "History"]

RETENTION_BYTES = 3000


class Cleanup(Enum):
    """With the topic's settings. Segments are small, so that there is something to clean."""

    KEEP = ()
    COMPACT = (("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0.01"), ("internal.segment.bytes", "300"))
    RETAIN = (("retention.bytes", str(RETENTION_BYTES)), ("internal.segment.bytes", "300"))
    DELETE = (("cleanup.policy", "delete"), ("internal.segment.bytes", "300"))


class History:
    """`deletable`: up to where somebody asked for deletion; `deleted`: up to where it was confirmed, and must stay."""

    def __init__(self, referee: "Referee", topic_id: uuid.UUID, index: int, cleanup: Cleanup) -> None:
        self._referee = referee
        self.topic_id, self.index, self.cleanup = topic_id, index, cleanup
        self.key = (topic_id.int, index)
        self.deletable = self.deleted = 0

    def __repr__(self) -> str:
        return f"{self.topic_id}-{self.index} ({self.cleanup.name})"

    # -- what a consumer reads

    def read(self, batch: Batch, *, position: int, taken: set[int]) -> None:
        """The next batch of a reader at `position`."""
        if self.cleanup is Cleanup.COMPACT:
            for record in records.iterate(batch):
                if record.offset >= position:
                    taken.add(record.offset)
            self._referee.batch_read("a consumer", self.key, batch, rewritten=True)
            return
        if batch.base_offset > position:
            self._referee.object(f"a consumer at {position} of {self} is sent {batch.base_offset}: a gap")
        self._referee.batch_read("a consumer", self.key, batch, rewritten=False)

    def skipped(self, position: int, start: int) -> None:
        """A reader at `position` was answered that the log begins at `start`."""
        self._check_start(start, f"a consumer at {position}")

    def check_taken(self, end: int, taken: set[int]) -> None:
        """What a reader of a compacted log was never sent had a later record of its key. At the end."""
        never = {offset for offset in self._latest() if offset < end} - taken
        if never:
            self._referee.object(f"a consumer of {self} was never sent {sorted(never)[:5]}, the latest of their keys")

    # -- what a replica has

    def check_replica(self, where: str, partition: "Partition", found: set[int], acknowledged: set[int]) -> None:
        """At the end. `found` is what the replica has; `acknowledged`: offsets of records."""
        start = partition.log.start_offset
        self._check_start(start, where)
        if start < self.deleted:
            self._referee.object(f"{where} begins at {start}; records below {self.deleted} were deleted")
        missing = {offset for offset in acknowledged if offset >= start} - found
        if self.cleanup is Cleanup.COMPACT:
            unseen = missing - self._referee.records.get(self.key, {}).keys()  # cleaned before they were observed
            missing = (missing & self._latest()) | {one for one in unseen if one > max(found, default=-1)}
        if missing:
            self._referee.object(
                f"{where}: {len(missing)} acknowledged records of {self} are lost: {sorted(missing)[:3]}"
            )

    def _latest(self) -> set[int]:
        """Of every key the offset of its latest record."""
        known = self._referee.records.get(self.key, {})
        return set({key: offset for offset, (key, _) in sorted(known.items())}.values())

    def _check_start(self, start: int, where: str) -> None:
        if self.cleanup in (Cleanup.KEEP, Cleanup.COMPACT) and start > 0:
            self._referee.object(f"{where}: {self} begins at {start}, and nobody deleted anything")
        if self.cleanup is Cleanup.DELETE and start > self.deletable:
            self._referee.object(f"{where}: {self} begins at {start}; only {self.deletable} was to be deleted")
