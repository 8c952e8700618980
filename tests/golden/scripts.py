"""Plays scripts and writes what they print: tests/golden/KIND/*.txt.

A script has command lines beginning with "> ", each followed by what it must print; lines beginning with "#" and empty
ones stay. `PYTHONPATH=tests python -m golden.scripts` names the scripts that print something else now; with `--rewrite`
it writes that. Read the difference before you commit it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from golden import classic_group_scripts, raft_scripts, transaction_scripts


class Script(Protocol):
    def run(self, line: str) -> list[str]:
        """What a command line prints."""


KINDS: dict[str, Callable[[], Script]] = {
    "classic_groups": classic_group_scripts.Script,
    "raft": raft_scripts.Script,
    "transactions": transaction_scripts.Script,
}


def scripts_of(kind: str) -> list[Path]:
    return sorted((Path(__file__).parent / kind).glob("*.txt"))


def play(script: Script, text: str) -> str:
    """The text with what it prints now."""
    lines = []
    for line in text.splitlines():
        if line.startswith("> "):
            lines += [line, *script.run(line[2:].partition("  #")[0])]
        elif line.startswith("#") or not line:
            lines.append(line)
    return "\n".join(lines) + "\n"


def main(*, rewrite: bool) -> None:
    for kind, make_script in KINDS.items():
        for path in scripts_of(kind):
            old = path.read_text()
            new = play(make_script(), old)
            if new != old:
                print(f"{kind}/{path.name} {'rewritten' if rewrite else 'differs'}")
                if rewrite:
                    path.write_text(new)


if __name__ == "__main__":
    main(rewrite="--rewrite" in sys.argv)
