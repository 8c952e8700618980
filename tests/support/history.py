"""What producers sent and what a consumer read, compared. Pure.

Names of the anomalies are those of Jepsen's Kafka workload. A value is unique within a history: it says which record
it is.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Send:
    """One record handed to a producer, in the order of handing over. `offset` is None while not acknowledged."""

    producer: str
    partition: int
    value: bytes
    offset: int | None


@dataclass(frozen=True)
class Read:
    """One record as a consumer got it, in the order of getting."""

    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True)
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


def _nonmonotonic_polls(reads: Sequence[Read]) -> Iterable[Anomaly]:
    latest: dict[int, int] = {}
    for read in reads:
        if read.offset <= latest.get(read.partition, -1):
            yield Anomaly("nonmonotonic-poll", f"{read} came after offset {latest[read.partition]}")
        latest[read.partition] = read.offset
