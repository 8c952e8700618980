"""Sets of characters as RE2 names them, cut down to those that topic names have. Pure."""

import string
import unicodedata

from ottla.group.regex_nodes import BadRegex

__all__ = ["ALPHABET", "CLASSES", "CONTROLS", "NAMED", "WORD_CHARACTERS", "either_case", "unicode_class"]

ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")
WORD_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_")

CLASSES = {
    "d": frozenset(string.digits),
    "w": WORD_CHARACTERS,
    "s": frozenset(),
}
NAMED = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": ALPHABET,
    "blank": frozenset(),
    "cntrl": frozenset(),
    "digit": frozenset(string.digits),
    "graph": ALPHABET,
    "lower": frozenset(string.ascii_lowercase),
    "print": ALPHABET,
    "punct": frozenset("._-"),
    "space": frozenset(),
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD_CHARACTERS,
    "xdigit": frozenset(string.hexdigits),
}
SCRIPTS = {
    "Any": ALPHABET,
    "Latin": frozenset(string.ascii_letters),
    "Common": frozenset(string.digits + "._-"),
}
CATEGORIES = frozenset(
    f"{major}{minor}"
    for major, minors in {
        "L": "ultmo",
        "M": "nce",
        "N": "dlo",
        "P": "cdseifo",
        "S": "mcko",
        "Z": "slp",
        "C": "cfs",
    }.items()
    for minor in ("", *minors)
)
CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unicode_class(name: str, shown: str) -> frozenset[str]:
    if name in SCRIPTS:
        return SCRIPTS[name]
    if name not in CATEGORIES:
        raise BadRegex(f"invalid character class range: `{shown}`")
    return frozenset(each for each in ALPHABET if unicodedata.category(each).startswith(name))


def either_case(characters: frozenset[str]) -> frozenset[str]:
    return frozenset(case for each in characters for case in (each.lower(), each.upper()))
