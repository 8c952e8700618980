"""Java's .properties syntax: comments, continued lines, escapes. Pure.

`parse_properties` gives (name, value, line number) in file order; a later line wins over an earlier one.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Property", "parse_properties", "render_property"]

BLANK = " \t\f"
LINE_END = re.compile(r"\r\n|\r|\n")
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    name: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    """Raises ValueError for a \\u that four hexadecimal digits do not follow."""
    return [_split(line, number) for line, number in _logical_lines(text)]


def render_property(name: str, value: str) -> str:
    """One line that parses back to the same pair."""
    escaped_name = re.sub(r"[=: \\#!]", lambda match: "\\" + match[0], _escape_controls(name))
    escaped = _escape_controls(value.replace("\\", "\\\\"))
    return f"{escaped_name}={'' if not escaped.startswith(' ') else chr(92)}{escaped}"


def _escape_controls(text: str) -> str:
    for letter, control in ESCAPES.items():
        text = text.replace(control, "\\" + letter)
    return text


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    """Lines without blanks before them, comments dropped and continuations joined."""
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
    if started and gathered:
        yield gathered, started


def _split(line: str, number: int) -> Property:
    end = next((at for at, letter in _unescaped(line) if letter in "=:" + BLANK), len(line))
    rest = line[end:].lstrip(BLANK)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(BLANK)
    return Property(_unescape(line[:end], number), _unescape(rest, number), number)


def _unescaped(line: str) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(line):
        if line[at] == "\\":
            at += 2
            continue
        yield at, line[at]
        at += 1


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        code, letter = match[1], match[2]
        if code is not None:
            return chr(int(code, 16))
        if letter == "u":
            raise ValueError(f"line {number}: \\u needs four hexadecimal digits")
        return ESCAPES.get(letter, letter)

    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.?))", plain, text, flags=re.DOTALL)
