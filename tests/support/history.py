"""What producers sent and what consumers read, compared. Pure.

Names of the anomalies are those of Jepsen's Kafka workload. A value is unique within a history: it says which record
it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OFFSET_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Send:
    """One record handed to a producer, in the order of handing over.

    `offset` is None while not acknowledged, and OFFSET_UNKNOWN when it was without saying where.
    """

    producer: str
    partition: int
    value: bytes
    offset: int | None


@dataclass(frozen=True, slots=True)
class Read:
    """One record as a consumer got it, in the order of arrival."""

    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: str
    detail: str


def anomalies(sends: Sequence[Send], reads: Sequence[Read]) -> list[Anomaly]:
    """Everything wrong with one complete read of all partitions after the producers ended; empty when all is well."""
    return [
        *_lost_writes(sends, reads),
        *_duplicates(reads),
        *_strangers(sends, reads),
        *_reordered(sends, reads),
        *_inconsistent_offsets(sends, reads),
        *_nonmonotonic_polls(reads),
    ]


def polled_anomalies(final: Sequence[Read], polls: Mapping[str, Sequence[Read]]) -> list[Anomaly]:
    """What consumers got while things went wrong, by consumer, against a complete read afterwards.

    Each began at the beginning, was assigned all partitions and had time to reach their ends.
    """
    log: dict[int, dict[int, bytes]] = defaultdict(dict)
    for read in final:
        log[read.partition][read.offset] = read.value
    found: list[Anomaly] = []
    for consumer, reads in polls.items():
        found += _nonmonotonic_polls(reads, consumer)
        found += _vanished(log, reads, consumer)
        for partition, values in log.items():
            found += _skipped(
                sorted(values), [r.offset for r in reads if r.partition == partition], partition, consumer
            )
    return found


def _vanished(log: Mapping[int, Mapping[int, bytes]], reads: Sequence[Read], consumer: str) -> Iterable[Anomaly]:
    """A consumer sees only what is committed, so it must be there for ever."""
    for read in reads:
        kept = log.get(read.partition, {}).get(read.offset)
        if kept is None:
            yield Anomaly("lost-write", f"{consumer} read {read}, which is not there any more")
        elif kept != read.value:
            yield Anomaly("inconsistent-offsets", f"{consumer} read {read}, where now {kept!r} is")


def _skipped(there: Sequence[int], got: Sequence[int], partition: int, consumer: str) -> Iterable[Anomaly]:
    """Records before the last one it got: poll-skip; after it: unseen."""
    missing = sorted(set(there) - set(got))
    last = max(got, default=-1)
    for offset in missing:
        kind = "poll-skip" if offset < last else "unseen"
        yield Anomaly(kind, f"{consumer} never got offset {offset} of partition {partition}; its last is {last}")


def _lost_writes(sends: Sequence[Send], reads: Sequence[Read]) -> Iterable[Anomaly]:
    seen = {(read.partition, read.value) for read in reads}
    for send in sends:
        if send.offset is not None and (send.partition, send.value) not in seen:
            yield Anomaly("lost-write", f"{send} was acknowledged and is not there")


def _duplicates(reads: Sequence[Read]) -> Iterable[Anomaly]:
    places: dict[bytes, set[tuple[int, int]]] = defaultdict(set)
    for read in reads:
        places[read.value].add((read.partition, read.offset))
    for value, where in places.items():
        if len(where) > 1:
            yield Anomaly("duplicate", f"{value!r} is at (partition, offset) {sorted(where)}")


def _strangers(sends: Sequence[Send], reads: Sequence[Read]) -> Iterable[Anomaly]:
    known = {(send.partition, send.value) for send in sends}
    for read in reads:
        if (read.partition, read.value) not in known:
            yield Anomaly("never-sent", f"{read} was read and nobody sent it there")


def _reordered(sends: Sequence[Send], reads: Sequence[Read]) -> Iterable[Anomaly]:
    """A producer's records in one partition must stand in the order of sending."""
    order = {(send.partition, send.value): (send.producer, number) for number, send in enumerate(sends)}
    latest: dict[tuple[int, str], int] = {}
    for read in sorted(reads, key=lambda one: (one.partition, one.offset)):
        producer, number = order.get((read.partition, read.value), ("", -1))
        if number < latest.get((read.partition, producer), -1):
            yield Anomaly("nonmonotonic-send", f"{read} stands after a record that {producer} sent later")
        latest[read.partition, producer] = number


def _inconsistent_offsets(sends: Sequence[Send], reads: Sequence[Read]) -> Iterable[Anomaly]:
    at: dict[tuple[int, int], bytes] = {}
    for read in reads:
        if at.setdefault((read.partition, read.offset), read.value) != read.value:
            yield Anomaly("inconsistent-offsets", f"{read} but {at[read.partition, read.offset]!r} was there before")
    for send in sends:
        if send.offset is not None and at.get((send.partition, send.offset), send.value) != send.value:
            yield Anomaly("inconsistent-offsets", f"{send} but {at[send.partition, send.offset]!r} is there")


def _nonmonotonic_polls(reads: Sequence[Read], consumer: str = "the consumer") -> Iterable[Anomaly]:
    latest: dict[int, int] = {}
    for read in reads:
        if read.offset <= latest.get(read.partition, -1):
            yield Anomaly("nonmonotonic-poll", f"{consumer} got {read} after offset {latest[read.partition]}")
        latest[read.partition] = read.offset
