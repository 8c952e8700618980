"""Acknowledgements as clients send them; all of a request are checked before any is applied. Pure."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import NamedTuple

from ottla.errors import Code, KafkaError

__all__ = ["Acknowledgement", "Kind", "Piece", "pieces"]


class Kind(IntEnum):
    GAP = 0  # there is no record at this offset
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3


class Acknowledgement(NamedTuple):
    """`kinds` has one entry for the whole span, or one for each of its offsets."""

    first: int
    last: int
    kinds: Sequence[int]


class Piece(NamedTuple):
    first: int
    last: int
    kind: Kind


def pieces(acknowledgements: Sequence[Acknowledgement]) -> list[Piece]:
    """Spans of one kind each, in order. KafkaError: INVALID_REQUEST when they are not in order or not complete."""
    found: list[Piece] = []
    reached = -1
    for each in acknowledgements:
        _check(each, reached)
        found += _pieces_of(each)
        reached = each.last
    return found


def _check(each: Acknowledgement, reached: int) -> None:
    size = each.last - each.first + 1
    if size <= 0 or each.first <= reached:
        raise KafkaError(Code.invalid_request, f"offsets {each.first} to {each.last} are not in order")
    if len(each.kinds) not in (1, size):
        raise KafkaError(
            Code.invalid_request, f"{len(each.kinds)} types for {size} offsets from {each.first} to {each.last}"
        )
    unknown = next((kind for kind in each.kinds if not Kind.GAP <= kind <= Kind.REJECT), None)
    if unknown is not None:
        raise KafkaError(Code.invalid_request, f"there is no acknowledge type {unknown}")


def _pieces_of(each: Acknowledgement) -> Iterator[Piece]:
    if len(each.kinds) == 1:
        yield Piece(each.first, each.last, Kind(each.kinds[0]))
        return
    first = each.first
    for kind, alike in groupby(each.kinds):
        size = sum(1 for _ in alike)
        yield Piece(first, first + size - 1, Kind(kind))
        first += size
