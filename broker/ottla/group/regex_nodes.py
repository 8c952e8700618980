"""The nodes of an automaton, and the parts of an expression that are made of them. Pure."""

from collections.abc import Callable
from typing import NamedTuple

__all__ = [
    "EITHER",
    "END_OF_TEXT",
    "MATCH",
    "NO_WORD_BOUNDARY",
    "ONE_OF",
    "START_OF_TEXT",
    "WORD_BOUNDARY",
    "BadRegex",
    "Build",
    "Node",
    "Part",
    "assertion",
    "either",
    "nothing",
    "one_of",
    "repeat",
    "sequence",
]

NODES_MAX = 10_000
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


def nothing(build: Build, then: int) -> int:
    return then


def assertion(kind: int) -> Part:
    return lambda build, then: build.add(Node(kind, then))


def one_of(characters: frozenset[str]) -> Part:
    return lambda build, then: build.add(Node(ONE_OF, then, characters=characters))


def sequence(parts: list[Part]) -> Part:
    def make(build: Build, then: int) -> int:
        for part in reversed(parts):
            then = part(build, then)
        return then

    return make


def either(parts: list[Part]) -> Part:
    def make(build: Build, then: int) -> int:
        first = parts[-1](build, then)
        for part in reversed(parts[:-1]):
            first = build.add(Node(EITHER, part(build, then), first))
        return first

    return make


def repeat(part: Part, least: int, most: int | None) -> Part:
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
