"""The in-flight records of a share-partition, as runs of records with the same state. Pure.

The runs are adjacent and cover the window from `start` to `end`. Records before it are final (acknowledged or
archived), records after it have never been read. A run is split only where states differ, and joined again when they
are equal.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from math import inf
from operator import attrgetter
from typing import NamedTuple

from ottla.share.core.messages import Delivery, StateBatch

__all__ = ["NOBODY", "InFlight", "RecordState", "Run", "Span"]

NOBODY = ""
FINAL = (Delivery.ACKNOWLEDGED, Delivery.ARCHIVED)

Span = tuple[int, int]
"""First and last offset, both inclusive."""


class RecordState(NamedTuple):
    """The state of records. `deliveries` is their delivery count; member and deadline are those of the lock."""

    delivery: Delivery = Delivery.AVAILABLE
    deliveries: int = 0
    member: str = NOBODY
    deadline: float = inf


NEW = RecordState()


class Run:
    """Records from `first` to `last`. `before`: restored if `record_state` cannot be written; None once it is."""

    __slots__ = ("before", "first", "last", "record_state")

    def __init__(self, first: int, last: int, record_state: RecordState, before: RecordState | None = None) -> None:
        self.first = first
        self.last = last
        self.record_state = record_state
        self.before = before

    @property
    def is_final(self) -> bool:
        return self.record_state.delivery in FINAL

    @property
    def is_available(self) -> bool:
        return self.record_state.delivery == Delivery.AVAILABLE and self.before is None

    def is_held_by(self, member: str) -> bool:
        state = self.record_state
        return state.delivery == Delivery.ACQUIRED and state.member == member and self.before is None

    def has_state_of(self, other: "Run") -> bool:
        return self.record_state == other.record_state and self.before == other.before


FIRST = attrgetter("first")


class InFlight:
    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.runs: list[Run] = []

    @classmethod
    def recover(cls, start: int, batches: Iterable[StateBatch]) -> "InFlight":
        """Acquired records are available again; records in no batch were never delivered."""
        window = cls(start)
        for batch in sorted(batches, key=FIRST):
            first = max(batch.first, window.end)
            if batch.last < first:
                continue
            window.extend(first)
            final = batch.delivery in FINAL
            record_state = RecordState(Delivery(batch.delivery) if final else Delivery.AVAILABLE, batch.count)
            window.runs.append(Run(first, batch.last, record_state))
            window.end = batch.last + 1
        window.advance()
        return window

    def __len__(self) -> int:
        return self.end - self.start

    # reading

    def overlapping(self, first: int, last: int) -> Iterator[Run]:
        """The runs that overlap the span."""
        at = max(bisect_right(self.runs, first, key=FIRST) - 1, 0)
        for run in self.runs[at:]:
            if run.first > last:
                return
            if run.last >= first:
                yield run

    @property
    def first_available(self) -> int | None:
        return next((run.first for run in self.runs if run.is_available), None)

    @property
    def start_if_written(self) -> int:
        """The start of the window once all pending changes are written."""
        return next((run.first for run in self.runs if not run.is_final), self.end)

    def batches(self, spans: Iterable[Span]) -> list[StateBatch]:
        """The states of the spans' records as batches for the log; acquired records count as available."""
        found: list[StateBatch] = []
        for first, last in _joined(spans):
            for run in self.overlapping(first, last):
                delivery, count = run.record_state.delivery, run.record_state.deliveries
                if delivery == Delivery.ACQUIRED:
                    delivery, count = Delivery.AVAILABLE, count - 1
                _add(found, StateBatch(max(run.first, first), min(run.last, last), int(delivery), count))
        return found

    # changing

    def extend(self, end: int) -> None:
        """Extend the window to `end` with records that were never delivered."""
        if end > self.end:
            self.runs.append(Run(self.end, end - 1, NEW))
            self.end = end

    def cut(self, first: int, last: int) -> list[Run]:
        """Split runs at the span's ends. Returns the runs of exactly this span, within the window."""
        begin, end = self._cut_at(first), self._cut_at(last + 1)
        return self.runs[begin:end]

    def _cut_at(self, offset: int) -> int:
        """The index of the run that starts at the offset, after splitting if needed."""
        at = bisect_right(self.runs, offset, key=FIRST) - 1
        if at < 0 or self.runs[at].last < offset:
            return at + 1
        run = self.runs[at]
        if run.first == offset:
            return at
        self.runs.insert(at + 1, Run(offset, run.last, run.record_state, run.before))
        run.last = offset - 1
        return at + 1

    def settle(self) -> None:
        """Join adjacent runs with equal states, and advance the start over final ones."""
        joined: list[Run] = []
        for run in self.runs:
            if joined and joined[-1].has_state_of(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self.runs = joined
        self.advance()

    def advance(self) -> None:
        done = 0
        for run in self.runs:
            if not run.is_final or run.before is not None:
                break
            done += 1
        del self.runs[:done]
        self.start = self.runs[0].first if self.runs else self.end

    def begin_at(self, offset: int) -> None:
        """Drop records before this offset: the log does not have them any more."""
        if offset <= self.start:
            return
        del self.runs[: self._cut_at(offset)]
        self.start = offset
        self.end = max(self.end, offset)
        self.advance()


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The same records, each of them once."""
    joined: list[Span] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return joined


def _add(batches: list[StateBatch], batch: StateBatch) -> None:
    if batches:
        before = batches[-1]
        if (before.last + 1, before.delivery, before.count) == (batch.first, batch.delivery, batch.count):
            batches[-1] = StateBatch(before.first, batch.last, batch.delivery, batch.count)
            return
    batches.append(batch)
