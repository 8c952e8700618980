"""What `kubectl get` prints, and what the README shows of it."""

import re
import shlex
from pathlib import Path

README = Path(__file__).parent.parent.parent / "README.md"


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
    (block,) = re.findall(r"## On Kubernetes\n\n```bash\n(.*?)```", README.read_text(), flags=re.DOTALL)
    lines = [shlex.split(line, comments=True) for line in block.splitlines()]
    return [words[1:] for words in lines if words[0] == program]
