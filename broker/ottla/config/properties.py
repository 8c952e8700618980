"""Java's .properties syntax: comments, continued lines, escapes. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Property", "parse_properties"]

BLANK = " \t\f"
LINE_END = re.compile(r"\r\n|\r|\n")
LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    name: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    """In file order; the last of a name wins. ValueError: \\u without four hexadecimal digits."""
    return [_split(line, number) for line, number in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Logical lines, stripped on the left, without comments, continuations joined; with the first line's number."""
    gathered, started = "", 0
    for number, line in enumerate(LINE_END.split(text), start=1):
        stripped = line.lstrip(BLANK)
        if not started:
            if not stripped or stripped[0] in "#!":
                continue
            started = number
        if (len(stripped) - len(stripped.rstrip("\\"))) % 2:
            gathered += stripped[:-1]
            continue
        yield gathered + stripped, started
        gathered, started = "", 0
    if gathered:
        yield gathered, started


def _split(line: str, number: int) -> Property:
    end = _end_of_name(line)
    rest = line[end:].lstrip(BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANK)
    return Property(_unescape(line[:end], number), _unescape(rest, number), number)


def _end_of_name(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in "=:" + BLANK:
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        code, letter = match[1], match[2]
        if code is not None:
            return chr(int(code, 16))
        if letter == "u":
            raise ValueError(f"line {number}: \\u needs four hexadecimal digits")
        return LETTERS.get(letter, letter)

    unescaped = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.?))", plain, text, flags=re.DOTALL)
    # Java escapes UTF-16 units, so a character beyond the BMP has two escapes.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
