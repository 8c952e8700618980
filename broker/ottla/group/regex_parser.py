"""RE2's syntax, read into the nodes of an automaton over the characters of topic names. Pure.

What RE2 does not know (references back, looking ahead or behind, possessive repeats) is refused, as Kafka does.
Whether a repeat is greedy does not matter to whether a whole name matches.
"""

import string
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

__all__ = [
    "ALPHABET",
    "EITHER",
    "END_OF_TEXT",
    "MATCH",
    "NO_WORD_BOUNDARY",
    "ONE_OF",
    "START_OF_TEXT",
    "WORD_BOUNDARY",
    "WORD_CHARACTERS",
    "BadRegex",
    "Node",
    "parsed",
]

ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")
WORD_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_")
NODES_MAX = 10_000
REPEAT_MAX = 1000
NESTING_MAX = 100

ONE_OF, EITHER, MATCH, START_OF_TEXT, END_OF_TEXT, WORD_BOUNDARY, NO_WORD_BOUNDARY = range(7)


class BadRegex(ValueError):
    """Not an expression that RE2 knows; says why, in RE2's words."""


class Node(NamedTuple):
    kind: int
    next: int = 0
    other: int = 0
    characters: frozenset[str] = frozenset()


class Build:
    """Nodes are made from the end to the start: each is given where to go on."""

    def __init__(self) -> None:
        self.nodes: list[Node] = [Node(MATCH)]  # its place becomes that of the start in `parsed`

    def add(self, node: Node) -> int:
        if len(self.nodes) >= NODES_MAX:
            raise BadRegex("expression too large")
        self.nodes.append(node)
        return len(self.nodes) - 1


Part = Callable[[Build, int], int]
"""Adds its nodes before the one given; the place of its first."""


def parsed(text: str) -> list[Node]:
    """Nodes; the first is the start."""
    parser = Parser(text)
    part = parser.alternatives(depth=0)
    if not parser.at_end:
        raise BadRegex("unexpected )")
    build = Build()
    match = build.add(Node(MATCH))
    build.nodes[0] = Node(EITHER, *(2 * (part(build, match),)))
    return build.nodes


# -- parts


def _nothing(build: Build, then: int) -> int:
    return then


def _assertion(kind: int) -> Part:
    return lambda build, then: build.add(Node(kind, then))


def _one_of(characters: frozenset[str]) -> Part:
    return lambda build, then: build.add(Node(ONE_OF, then, characters=characters))


def _sequence(parts: list[Part]) -> Part:
    def make(build: Build, then: int) -> int:
        for part in reversed(parts):
            then = part(build, then)
        return then

    return make


def _either(parts: list[Part]) -> Part:
    def make(build: Build, then: int) -> int:
        first = parts[-1](build, then)
        for part in reversed(parts[:-1]):
            first = build.add(Node(EITHER, part(build, then), first))
        return first

    return make


def _repeat(part: Part, least: int, most: int | None) -> Part:
    def star(build: Build, then: int) -> int:
        loop = build.add(Node(EITHER, then, then))
        build.nodes[loop] = Node(EITHER, part(build, loop), then)
        return loop

    def make(build: Build, then: int) -> int:
        if most is None:
            then = star(build, then)
        else:
            end = then
            for _ in range(most - least):
                then = build.add(Node(EITHER, part(build, then), end))
        for _ in range(least):
            then = part(build, then)
        return then

    return make


# -- sets of characters

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


def _unicode_class(name: str, shown: str) -> frozenset[str]:
    if name in SCRIPTS:
        return SCRIPTS[name]
    if name not in CATEGORIES:
        raise BadRegex(f"invalid character class range: `{shown}`")
    return frozenset(each for each in ALPHABET if unicodedata.category(each).startswith(name))


def _either_case(characters: frozenset[str]) -> frozenset[str]:
    return frozenset(case for each in characters for case in (each.lower(), each.upper()))


class Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._ignores_case = False

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def alternatives(self, *, depth: int) -> Part:
        if depth > NESTING_MAX:
            raise BadRegex("expression nests too deeply")
        parts = [self._concatenation(depth)]
        while self._skip("|"):
            parts.append(self._concatenation(depth))
        return _either(parts) if len(parts) > 1 else parts[0]

    def _concatenation(self, depth: int) -> Part:
        parts: list[Part] = []
        while not self.at_end and self._peek() not in "|)":
            if self._skip("\\Q"):
                parts += map(self._literal, self._quoted())
                continue
            part = self._atom(depth)
            if part is not None:
                parts.append(self._repeated(part))
        return _sequence(parts) if parts else _nothing

    # -- one thing

    def _atom(self, depth: int) -> Part | None:
        """None for what is only a change of flags."""
        start = self._at
        if self._count() is not None:
            raise BadRegex(f"missing argument to repetition operator: `{self._text[start : self._at]}`")
        character = self._take()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return _one_of(self._cased(self._bracket()))
            case ".":
                return _one_of(ALPHABET)
            case "^":
                return _assertion(START_OF_TEXT)
            case "$":
                return _assertion(END_OF_TEXT)
            case "\\":
                return self._escaped()
        return self._literal(character)

    def _literal(self, character: str) -> Part:
        return _one_of(self._cased(frozenset(character)))

    def _cased(self, characters: frozenset[str]) -> frozenset[str]:
        return _either_case(characters) if self._ignores_case else characters

    def _quoted(self) -> str:
        end = self._text.find("\\E", self._at)
        text = self._text[self._at :] if end < 0 else self._text[self._at : end]
        self._at = len(self._text) if end < 0 else end + 2
        return text

    def _group(self, depth: int) -> Part | None:
        before = self._ignores_case
        if self._skip("?") and not self._group_head():
            return None
        part = self.alternatives(depth=depth + 1)
        if not self._skip(")"):
            raise BadRegex("missing closing )")
        self._ignores_case = before
        return part

    def _group_head(self) -> bool:
        """After `(?`. False when it is only flags, which hold until the end of the group around it."""
        looks_behind = self._text.startswith(("<=", "<!"), self._at)
        for start in ("P<", "<"):
            if self._text.startswith(start, self._at) and not looks_behind:
                return self._group_name(start)
        flags_start, negative, seen = self._at, False, False
        while not self.at_end:
            character = self._take()
            if character in "imsU":
                seen = True
                if character == "i":
                    self._ignores_case = not negative
            elif character == "-" and not negative:
                negative, seen = True, False
            elif character in ":)" and (seen or not negative):
                return character == ":"
            else:
                break
        raise BadRegex(f"invalid or unsupported Perl syntax: `(?{self._text[flags_start : self._at]}`")

    def _group_name(self, start: str) -> bool:
        end = self._text.find(">", self._at)
        name = self._text[self._at + len(start) : end]
        if end < 0 or not name or not all(each in WORD_CHARACTERS for each in name):
            raise BadRegex(f"invalid named capture: `(?{self._text[self._at :]}`")
        self._at = end + 1
        return True

    # -- repeats

    def _repeated(self, part: Part) -> Part:
        start = self._at
        count = self._count()
        if count is None:
            return part
        self._skip("?")
        if self._count() is not None:
            raise BadRegex(f"invalid nested repetition operator: `{self._text[start : self._at]}`")
        return _repeat(part, *count)

    def _count(self) -> tuple[int, int | None] | None:
        """Zero or more of something. A brace that does not count is an ordinary character."""
        for sign, count in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(sign):
                return count
        end = self._text.find("}", self._at)
        if self.at_end or self._peek() != "{" or end < 0:
            return None
        least_text, comma, most_text = self._text[self._at + 1 : end].partition(",")
        if not least_text.isdecimal() or not (most_text.isdecimal() or not most_text):
            return None
        least = int(least_text)
        most = (int(most_text) if most_text else None) if comma else least
        if least > REPEAT_MAX or (most is not None and (most > REPEAT_MAX or most < least)):
            raise BadRegex(f"invalid repeat count: `{self._text[self._at : end + 1]}`")
        self._at = end + 1
        return least, most

    # -- escapes and brackets

    def _escaped(self) -> Part:
        if self.at_end:
            raise BadRegex("trailing backslash at end of expression")
        assertions = {"A": START_OF_TEXT, "z": END_OF_TEXT, "b": WORD_BOUNDARY, "B": NO_WORD_BOUNDARY}
        if self._peek() in assertions:
            return _assertion(assertions[self._take()])
        return _one_of(self._cased(self._escaped_set()))

    def _escaped_set(self) -> frozenset[str]:
        """The characters that an escape stands for, after its backslash."""
        start = self._at
        character = self._take()
        if character.lower() in CLASSES:
            found = CLASSES[character.lower()]
            return found if character.islower() else ALPHABET - found
        if character in "pP":
            return self._unicode(negated=character == "P")
        if character in CONTROLS:
            return frozenset(CONTROLS[character])
        if character == "x" and (code := self._hexadecimal()) is not None:
            return frozenset(code)
        if character == "0" or (character in "1234567" and self._text[self._at : self._at + 1] in set("01234567")):
            while self._at - start < 3 and not self.at_end and self._peek() in "01234567":
                self._at += 1
            return frozenset(chr(int(self._text[start : self._at], 8)))
        if character.isascii() and not character.isalnum():
            return frozenset(character)
        raise BadRegex(f"invalid escape sequence: `\\{character}`")

    def _hexadecimal(self) -> str | None:
        if self._skip("{"):
            digits, closed, _ = self._text[self._at :].partition("}")
            used = len(digits) + 1 if closed else -1
        else:
            digits = self._text[self._at : self._at + 2]
            used = 2 if len(digits) == 2 else -1
        if used < 0 or not digits or not all(each in string.hexdigits for each in digits) or int(digits, 16) > 0x10FFFF:
            return None
        self._at += used
        return chr(int(digits, 16))

    def _unicode(self, *, negated: bool) -> frozenset[str]:
        start = self._at
        if self._skip("{"):
            name, closed, _ = self._text[self._at :].partition("}")
            self._at += len(name) + 1
            if not closed:
                raise BadRegex(f"invalid character class range: `\\p{self._text[start:]}`")
        else:
            name = self._take()
        if name.startswith("^"):
            name, negated = name[1:], not negated
        found = _unicode_class(name, f"\\p{self._text[start : self._at]}")
        return ALPHABET - found if negated else found

    def _bracket(self) -> frozenset[str]:
        start = self._at - 1
        negated = self._skip("^")
        found: set[str] = set()
        first = True
        while first or self._peek_or_fail(start) != "]":
            self._peek_or_fail(start)
            first = False
            found |= self._bracket_item(start)
        self._at += 1
        chosen = self._cased(frozenset(found))
        return ALPHABET - chosen if negated else chosen

    def _bracket_item(self, start: int) -> frozenset[str]:
        if self._text.startswith("[:", self._at) and (end := self._text.find(":]", self._at)) > 0:
            return self._named(end)
        low = self._bracket_character(start)
        if len(low) != 1 or not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
            return low
        item = self._at - 1
        self._at += 1
        self._peek_or_fail(start)
        high = self._bracket_character(start)
        if len(high) != 1 or min(high) < min(low):
            raise BadRegex(f"invalid character class range: `{self._text[item : self._at]}`")
        return frozenset(each for each in ALPHABET if min(low) <= each <= min(high))

    def _bracket_character(self, start: int) -> frozenset[str]:
        character = self._take()
        if character != "\\":
            return frozenset(character)
        self._peek_or_fail(start)
        return self._escaped_set()

    def _named(self, end: int) -> frozenset[str]:
        name = self._text[self._at + 2 : end]
        bare = name.removeprefix("^")
        if bare not in NAMED:
            raise BadRegex(f"invalid character class range: `[:{name}:]`")
        self._at = end + 2
        return ALPHABET - NAMED[bare] if bare != name else NAMED[bare]

    # -- characters

    def _peek(self) -> str:
        return self._text[self._at]

    def _peek_or_fail(self, start: int) -> str:
        if self.at_end:
            raise BadRegex(f"missing closing ]: `{self._text[start:]}`")
        return self._peek()

    def _take(self) -> str:
        character = self._text[self._at]
        self._at += 1
        return character

    def _skip(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False
