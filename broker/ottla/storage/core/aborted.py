"""Aborted transactions of a segment, as a reader of committed records needs them."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import NamedTuple

__all__ = ["AbortedIndex", "AbortedTransaction"]

FIELDS = 4
FIRST_OFFSET, LAST_OFFSET, STABLE_OFFSET = 1, 2, 3


class AbortedTransaction(NamedTuple):
    """`last_offset` is the marker's; `last_stable_offset` is that of the moment when the marker was written."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedIndex:
    """In memory, in marker order. The loop changes it; threads may search at the same time."""

    __slots__ = ("_numbers",)

    def __init__(self, aborted: Iterable[AbortedTransaction] = ()) -> None:
        self._numbers = array("q", (number for one in aborted for number in one))

    def __len__(self) -> int:
        return len(self._numbers) // FIELDS

    def __iter__(self) -> Iterator[AbortedTransaction]:
        numbers = self._numbers
        return (AbortedTransaction(*numbers[at : at + FIELDS]) for at in range(0, len(self) * FIELDS, FIELDS))

    def append(self, one: AbortedTransaction) -> None:
        self._numbers.extend(one)

    def truncate(self, offset: int) -> bool:
        """Drop transactions whose markers are at `offset` or beyond. Returns whether there were any."""
        keep = self._first_ending_at(offset) * FIELDS
        shortened = keep < len(self._numbers)
        if shortened:
            self._numbers = self._numbers[:keep]
        return shortened

    def overlapping(self, start: int, end: int) -> tuple[list[tuple[int, int]], bool]:
        """(producer id, first offset) of those with records in [start, end), and whether later segments have none.

        As in Kafka: if a marker's last stable offset is not below `end`, no later marker concerns that range.
        """
        numbers, found = self._numbers, []
        for at in range(self._first_ending_at(start) * FIELDS, len(numbers) // FIELDS * FIELDS, FIELDS):
            if numbers[at + FIRST_OFFSET] < end:
                found.append((numbers[at], numbers[at + FIRST_OFFSET]))
            if numbers[at + STABLE_OFFSET] >= end:
                return found, True
        return found, False

    def _first_ending_at(self, offset: int) -> int:
        numbers = self._numbers
        return bisect_left(range(len(self)), offset, key=lambda number: numbers[number * FIELDS + LAST_OFFSET])
