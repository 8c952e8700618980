"""What an answer says became of each thing that its request meant to change. Pure.

A handler's fields come by here on their way into the response, so that the audit trail tells what the client was told.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["Lines", "Outcomes"]

Codes = frozenset[int]
NO_CODES: Codes = frozenset()


class Lines(NamedTuple):
    """The array of an answer that has a line for each thing. `keys`: as which its request may have named it; without,
    the lines come in the order of the request."""

    array: str
    keys: Callable[[Mapping[str, Any]], Iterable[Hashable]] | None = None
    inner: str = ""
    """The array in a line whose lines are the things; `keys` gets them with the fields of both."""
    needs: str = ""
    """The array that is empty when the line says `none` and nothing was there to change."""


class Outcomes:
    """Of one request. `lines` is None where the answer has one code for all."""

    __slots__ = ("_codes", "_count", "_inner", "_lines", "_whole")

    def __init__(self, lines: Lines | None) -> None:
        self._lines = lines
        self._whole: int | None = None
        self._codes: dict[Hashable, Codes] = {}
        self._count = 0
        self._inner = NO_CODES

    def answered(self, fields: Mapping[str, Any]) -> None:
        """All fields of the answer; `element` had what it was encoded from before."""
        self._whole = fields.get("error_code")
        found = fields.get(self._lines.array) if self._lines is not None else None
        for line in found if isinstance(found, list) else ():
            self._line(line)

    def element(self, path: tuple[str, ...], line: Mapping[str, Any]) -> None:
        """A line that is encoded at once. What is inside of one comes before it."""
        if self._lines is None or path[0] != self._lines.array:
            return
        if len(path) > 1:
            self._inner |= frozenset(_codes(line))
        else:
            self._line(line)

    def _line(self, line: Mapping[str, Any]) -> None:
        lines = self._lines
        assert lines is not None
        for one in line[lines.inner] if lines.inner else [line]:
            did_nothing = lines.needs and not one["error_code"] and not one[lines.needs]
            codes = NO_CODES if did_nothing else self._inner.union(_codes(one))
            for key in lines.keys({**line, **one}) if lines.keys is not None else [self._count]:
                self._codes[key] = self._codes.get(key, NO_CODES) | codes
        self._count += 1
        self._inner = NO_CODES

    def of(self, key: Hashable, position: int) -> Codes:
        """Of what the request named by this key, at this position; none when nothing was done about it."""
        if self._whole or self._lines is None:
            return NO_CODES if self._whole is None else frozenset({self._whole})
        return self._codes.get(key if self._lines.keys is not None else position, NO_CODES)

    @property
    def all(self) -> Codes:
        """Of everything, where the request named nothing."""
        return frozenset({self._whole}) if self._whole else NO_CODES.union(*self._codes.values())


def _codes(line: Mapping[str, Any]) -> Iterator[int]:
    """Its own, or those of the lines inside."""
    own = line.get("error_code")
    if own is not None:
        yield own
        return
    for value in line.values():
        if isinstance(value, list):
            for each in value:
                if isinstance(each, Mapping):
                    yield from _codes(each)
