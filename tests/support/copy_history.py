"""What copiers took from one topic and wrote to another in transactions, compared. Pure.

A copier writes the records of one transaction (an attempt, with a name of its own) to the partitions that they came
from, and beside them, into a partition of its own, a total: how many there are. This distinguishes
a part of a transaction from the whole, and an attempt that was given up from the one that replaced it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from support.history import Anomaly, Read


class Outcome(Enum):
    """The answer that the copier got. One that died before has an open attempt: wholly committed or wholly aborted."""

    OPEN = "open"
    COMMITTED = "commit"
    ABORTED = "abort"


@dataclass(frozen=True, slots=True)
class Copy:
    attempt: str
    partition: int
    source_offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Total:
    attempt: str
    count: int


@dataclass(frozen=True, slots=True)
class Copied:
    """All that is to be judged: the source by partition, what read_committed shows of the target, how attempts ended,
    and the offsets that the copiers' group has committed (none: 0)."""

    source: Mapping[int, Sequence[bytes]]
    reads: Sequence[Read]
    outcomes: Mapping[str, Outcome]
    offsets: Mapping[int, int]


def written(value: bytes, partition: int) -> Copy | Total:
    """`ATTEMPT copy OFFSET VALUE` or `ATTEMPT total COUNT`."""
    attempt, kind, number, *rest = value.split(b" ", 3)
    if kind == b"total":
        return Total(attempt.decode(), int(number))
    return Copy(attempt.decode(), partition, int(number), rest[0])


def copy_anomalies(copied: Copied) -> list[Anomaly]:
    """Everything wrong with a complete read while no transaction is open; empty when all is well."""
    reads = sorted(copied.reads, key=lambda read: (read.partition, read.offset))
    records = [written(read.value, read.partition) for read in reads]
    copies = [record for record in records if isinstance(record, Copy)]
    return [
        *_wrong_attempts(copied.outcomes, {record.attempt for record in records}),
        *_torn(copies, [record for record in records if isinstance(record, Total)]),
        *_changed(copied.source, copies),
        *_doubled_or_reordered(copies),
        *_offsets_that_disagree(copied.offsets, copies),
    ]


def aborted_reads(reads: Iterable[Read], outcomes: Mapping[str, Outcome]) -> list[Anomaly]:
    """For a reader along the way: what it saw of attempts that were aborted before or after it read them (G1a)."""
    seen = {written(read.value, read.partition).attempt for read in reads}
    return [
        Anomaly("aborted-read", f"{attempt} was aborted and is there")
        for attempt in sorted(seen)
        if outcomes.get(attempt) is Outcome.ABORTED
    ]


def _wrong_attempts(outcomes: Mapping[str, Outcome], seen: set[str]) -> Iterable[Anomaly]:
    for attempt in sorted(seen):
        if attempt not in outcomes:
            yield Anomaly("never-sent", f"nobody began {attempt}")
        elif outcomes[attempt] is Outcome.ABORTED:
            yield Anomaly("aborted-read", f"{attempt} was aborted and is there")
    for attempt, outcome in outcomes.items():
        if outcome is Outcome.COMMITTED and attempt not in seen:
            yield Anomaly("lost-transaction", f"{attempt} was committed and is not there")


def _torn(copies: Sequence[Copy], totals: Sequence[Total]) -> Iterable[Anomaly]:
    there = Counter(copy.attempt for copy in copies)
    counted: dict[str, list[int]] = defaultdict(list)
    for total in totals:
        counted[total.attempt].append(total.count)
    for attempt in sorted(there.keys() | counted.keys()):
        if counted[attempt] != [there[attempt]]:
            yield Anomaly("torn", f"{attempt} has {there[attempt]} copies; its totals say {counted[attempt]}")


def _changed(source: Mapping[int, Sequence[bytes]], copies: Sequence[Copy]) -> Iterable[Anomaly]:
    for copy in copies:
        values = source.get(copy.partition, ())
        if copy.source_offset >= len(values) or values[copy.source_offset] != copy.value:
            yield Anomaly("never-sent", f"{copy} is not what the source has there")


def _doubled_or_reordered(copies: Sequence[Copy]) -> Iterable[Anomaly]:
    """Copies stand in the order of their partitions, and in each in the order of the source."""
    latest: dict[int, Copy] = {}
    seen: dict[tuple[int, int], Copy] = {}
    for copy in copies:
        place = (copy.partition, copy.source_offset)
        if place in seen:
            yield Anomaly("duplicate", f"{copy} is there as {seen[place].attempt} too")
        elif copy.partition in latest and copy.source_offset < latest[copy.partition].source_offset:
            yield Anomaly("reordered", f"{copy} stands after {latest[copy.partition]}")
        seen.setdefault(place, copy)
        latest[copy.partition] = copy


def _offsets_that_disagree(offsets: Mapping[int, int], copies: Sequence[Copy]) -> Iterable[Anomaly]:
    """A committed offset says: all before it is copied, and nothing from there on."""
    there: dict[int, set[int]] = defaultdict(set)
    for copy in copies:
        there[copy.partition].add(copy.source_offset)
    for partition in sorted(there.keys() | offsets.keys()):
        committed = offsets.get(partition, 0)
        lost = sorted(set(range(committed)) - there[partition])
        if lost:
            yield Anomaly("lost-copy", f"partition {partition}: {len(lost)} before offset {committed}, from {lost[0]}")
        ahead = sorted(offset for offset in there[partition] if offset >= committed)
        if ahead:
            yield Anomaly("offset-behind", f"partition {partition}: offset {committed}, and {ahead[:5]} are copied")
