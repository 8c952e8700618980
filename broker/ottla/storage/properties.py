"""Java's properties format, as far as `meta.properties` and `server.properties` need it. Pure."""

import re
from collections.abc import Mapping

__all__ = ["decode", "encode"]

_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_NAMES = {letter: name for name, letter in _LETTERS.items()}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def decode(text: str) -> dict[str, str]:
    """Keys and values; the last one wins. Comments, continued lines and escapes as in java.util.Properties."""
    values: dict[str, str] = {}
    for line in _logical_lines(text):
        pair = _PAIR.fullmatch(line)
        assert pair, "the pattern matches any line"
        values[_unescape(pair[1])] = _unescape(pair[2])
    return values


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    continued = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not continued and (not line or line[0] in "#!"):
            continue
        line = continued + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            continued = line[:-1]
        else:
            continued = ""
            lines.append(line)
    return lines + ([continued] if continued else [])


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _LETTERS.get(code, code)

    # Java escapes UTF-16 units, so a character beyond the first plane arrives as two.
    return _ESCAPE.sub(character, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encode(values: Mapping[str, str]) -> str:
    return "".join(f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in values.items())


def _escape(text: str, *, key: bool = False) -> str:
    escaped = "".join(_escape_character(character) for character in text)
    if key:
        return escaped.replace(" ", "\\ ")
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _escape_character(character: str) -> str:
    if character in _NAMES:
        return "\\" + _NAMES[character]
    if character in "\\#!=:":
        return "\\" + character
    if not " " <= character <= "~":
        units = character.encode("utf-16-be")
        return "".join(f"\\u{units[i]:02X}{units[i + 1]:02X}" for i in range(0, len(units), 2))
    return character
