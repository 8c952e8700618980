"""Matching of topic names by RE2's regular expressions, in time that grows with the name's length only. Pure.

Python's own `re` can take for ever over an expression that somebody sent, and knows things that RE2 does not. Topic
names have few characters, so expressions become small automata: states are made when a name first needs them.
"""

from collections.abc import Callable
from functools import lru_cache

from ottla.group.regex_characters import WORD_CHARACTERS
from ottla.group.regex_nodes import (
    EITHER,
    END_OF_TEXT,
    MATCH,
    NO_WORD_BOUNDARY,
    ONE_OF,
    START_OF_TEXT,
    WORD_BOUNDARY,
    BadRegex,
    Node,
)
from ottla.group.regex_parser import parsed

__all__ = ["BadRegex", "Regex", "compiled"]

EXPRESSIONS_KEPT_MAX = 1000
STATES_KEPT_MAX = 1000
END = ""
State = tuple[frozenset[int], str]
"""Places in the expression, and the character before."""


@lru_cache(maxsize=EXPRESSIONS_KEPT_MAX)
def compiled(text: str) -> "Regex":
    """BadRegex says what is wrong."""
    return Regex(parsed(text))


class Regex:
    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._start: State = (frozenset({0}), END)
        self._steps: dict[State, dict[str, State | None]] = {}

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        state = self._start
        for character in name:
            after = self._step(state, character)
            if after is None:
                return False
            state = after
        return self._step(state, END) is not None

    def _step(self, state: State, character: str) -> State | None:
        known = self._steps.get(state)
        if known is None:
            if len(self._steps) >= STATES_KEPT_MAX:
                self._steps.clear()
            known = self._steps[state] = {}
        if character not in known:
            known[character] = self._next(state, character)
        return known[character]

    def _next(self, state: State, character: str) -> State | None:
        """The state after this character; at the end of the name, a state if it matches."""
        places = self._reachable(*state, character)
        if character == END:
            return state if any(self._nodes[at].kind == MATCH for at in places) else None
        after = {
            self._nodes[at].next
            for at in places
            if self._nodes[at].kind == ONE_OF and character in self._nodes[at].characters
        }
        return (frozenset(after), character) if after else None

    def _reachable(self, places: frozenset[int], before: str, after: str) -> set[int]:
        """All places that are reached without taking a character."""
        seen: set[int] = set()
        waiting = list(places)
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            node = self._nodes[at]
            if node.kind == EITHER:
                waiting += (node.next, node.other)
            elif node.kind in HOLDS and HOLDS[node.kind](before, after):
                waiting.append(node.next)
        return seen


def _at_word_boundary(before: str, after: str) -> bool:
    return (before in WORD_CHARACTERS) != (after in WORD_CHARACTERS)


HOLDS: dict[int, Callable[[str, str], bool]] = {
    START_OF_TEXT: lambda before, after: before == END,
    END_OF_TEXT: lambda before, after: after == END,
    WORD_BOUNDARY: _at_word_boundary,
    NO_WORD_BOUNDARY: lambda before, after: not _at_word_boundary(before, after),
}
