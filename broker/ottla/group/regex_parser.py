"""RE2's syntax, read into the nodes of an automaton over the characters of topic names. Pure.

What RE2 does not know (references back, looking ahead or behind, possessive repeats) is refused, as Kafka does.
Whether a repeat is greedy does not matter to whether a whole name matches.
"""

import string

from ottla.group.regex_characters import (
    ALPHABET,
    CLASSES,
    CONTROLS,
    NAMED,
    WORD_CHARACTERS,
    either_case,
    unicode_class,
)
from ottla.group.regex_nodes import (
    EITHER,
    END_OF_TEXT,
    MATCH,
    NO_WORD_BOUNDARY,
    START_OF_TEXT,
    WORD_BOUNDARY,
    BadRegex,
    Build,
    Node,
    Part,
    assertion,
    either,
    nothing,
    one_of,
    repeat,
    sequence,
)

__all__ = ["parsed"]

REPEAT_MAX = 1000
NESTING_MAX = 100


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
        return either(parts) if len(parts) > 1 else parts[0]

    def _concatenation(self, depth: int) -> Part:
        parts: list[Part] = []
        while not self.at_end and self._peek() not in "|)":
            if self._skip("\\Q"):
                parts += map(self._literal, self._quoted())
                continue
            part = self._atom(depth)
            if part is not None:
                parts.append(self._repeated(part))
        return sequence(parts) if parts else nothing

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
                return one_of(self._cased(self._bracket()))
            case ".":
                return one_of(ALPHABET)
            case "^":
                return assertion(START_OF_TEXT)
            case "$":
                return assertion(END_OF_TEXT)
            case "\\":
                return self._escaped()
        return self._literal(character)

    def _literal(self, character: str) -> Part:
        return one_of(self._cased(frozenset(character)))

    def _cased(self, characters: frozenset[str]) -> frozenset[str]:
        return either_case(characters) if self._ignores_case else characters

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
        return repeat(part, *count)

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
            return assertion(assertions[self._take()])
        return one_of(self._cased(self._escaped_set()))

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
        found = unicode_class(name, f"\\p{self._text[start : self._at]}")
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
