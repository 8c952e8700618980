"""What `kubectl get` prints, and what the README shows of it."""

import shlex

from support.documents import block_under, commands_of


def rows(table: str) -> dict[str, tuple[list[str], list[str]]]:
    """By name: the heading above it, and its cells."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    heading: list[str] = []
    for line in table.splitlines():
        cells = line.split()
        if cells[:1] == ["NAME"]:
            heading = cells
        elif cells:
            found[cells[0]] = (heading, cells)
    return found


def readme_commands(program: str) -> list[list[str]]:
    """The arguments of each line of the README's Kubernetes block that calls this program."""
    lines = map(shlex.split, commands_of(block_under("On Kubernetes")))
    return [words[1:] for words in lines if words[0] == program]
