"""Rules for the values of settings, with Kafka's messages. Pure.

A rule renders as in Kafka's documentation (`[0,...]`); `problem` returns the end of Kafka's sentence, or None.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ottla.ids import uuid_from_text

__all__ = [
    "ClusterId",
    "NonEmpty",
    "NonEmptyList",
    "OneOf",
    "Range",
    "RangeOr",
    "Rule",
    "SomeOf",
    "ThrottledReplicas",
    "at_least",
    "between",
    "one_of",
    "some_of",
]

Number = int | float


class Rule(Protocol):
    def problem(self, value: object) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Range:
    low: Number | None = None
    high: Number | None = None

    def problem(self, value: object) -> str | None:
        assert isinstance(value, int | float)
        if self.low is not None and value < self.low:
            return f"Value must be at least {self.low}"
        if self.high is not None and value > self.high:
            return f"Value must be no more than {self.high}"
        return None

    def __str__(self) -> str:
        ends = [str(end) for end in (self.low, "...", self.high) if end is not None]
        return f"[{','.join(ends)}]"


@dataclass(frozen=True, slots=True)
class RangeOr:
    """A range and one other value, such as a compression level or -1."""

    low: int
    high: int
    other: int

    def problem(self, value: object) -> str | None:
        assert isinstance(value, int)
        if value == self.other or self.low <= value <= self.high:
            return None
        return f"Value must be between {self.low} and {self.high} or equal to {self.other}"

    def __str__(self) -> str:
        return f"[{self.low},...,{self.high}] or {self.other}"


@dataclass(frozen=True, slots=True)
class OneOf:
    names: tuple[str, ...]
    ignore_case: bool = False

    def problem(self, value: object) -> str | None:
        text = str(value).upper() if self.ignore_case else str(value)
        if text in self.names:
            return None
        kind = " (case insensitive)" if self.ignore_case else ""
        return f"String must be one of{kind}: {', '.join(self.names)}"

    def __str__(self) -> str:
        return ("(case insensitive) " if self.ignore_case else "") + f"[{', '.join(self.names)}]"


@dataclass(frozen=True, slots=True)
class SomeOf:
    """A list whose every item is one of the names."""

    names: tuple[str, ...]

    def problem(self, value: object) -> str | None:
        assert isinstance(value, tuple)
        return next((OneOf(self.names).problem(item) for item in value if item not in self.names), None)

    def __str__(self) -> str:
        return f"[{', '.join(self.names)}]"


@dataclass(frozen=True, slots=True)
class NonEmpty:
    def problem(self, value: object) -> str | None:
        return "String must be non-empty" if value == "" else None

    def __str__(self) -> str:
        return "non-empty string"


@dataclass(frozen=True, slots=True)
class NonEmptyList:
    """Kafka's own default violates this rule, so an empty list counts as unset and passes."""

    def problem(self, value: object) -> str | None:
        return None

    def __str__(self) -> str:
        return "non-empty list"


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    FORM = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

    def problem(self, value: object) -> str | None:
        assert isinstance(value, tuple)
        if all(re.fullmatch(r"[0-9]+:[0-9]+", item) for item in value) or (value and value[0] in ("*", "none")):
            return None
        return f"must be the literal '*' or a list of replicas in the following format: {self.FORM}"

    def __str__(self) -> str:
        return self.FORM


@dataclass(frozen=True, slots=True)
class ClusterId:
    def problem(self, value: object) -> str | None:
        try:
            if value != "":  # unset
                uuid_from_text(str(value))
        except ValueError:
            return self.refusal(str(value))
        return None

    @staticmethod
    def refusal(text: str) -> str:
        return f"{text!r} is not a cluster id of 22 characters; `ottla random-uuid` makes one"

    def __str__(self) -> str:
        return "22 characters, as `ottla random-uuid` makes them"


def at_least(low: Number) -> Range:
    return Range(low)


def between(low: Number, high: Number) -> Range:
    return Range(low, high)


def one_of(*names: str, ignore_case: bool = False) -> OneOf:
    return OneOf(names, ignore_case)


def some_of(*names: str) -> SomeOf:
    return SomeOf(names)


def quoted_list(value: Sequence[str]) -> str:
    """A list as Java prints it in Kafka's messages."""
    return f"[{', '.join(value)}]"
