"""`python -m bench --compare OLD NEW`: two commits of Ottla in alternating rounds; medians, spread, what has changed.

Each commit is checked out beside this one, with an environment of its own, and measured by the present bench.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.report import figure
from bench.rows import SAME, Reading

TOP = Path(__file__).parent.parent
TREES = Path.home() / ".cache" / "ottla" / "bench"
OUT = Path(__file__).parent / "out" / "compare.json"
ENVIRONMENT_TIMEOUT_S = 600.0
RUNS_MIN = 2  # one run has no spread


@dataclass(frozen=True)
class Change:
    """One row of two versions. `spread` is how far the runs of one version lie apart, as a share of their median."""

    name: str
    unit: str
    old: float
    new: float
    spread: float
    runs: int  # of the version that has fewer

    @property
    def change(self) -> float:
        """0.03: 3 % more than before."""
        return self.new / self.old - 1 if self.old else 0.0

    @property
    def verdict(self) -> str:
        if self.runs < RUNS_MIN:
            return "too few runs"
        if abs(self.change) <= max(SAME, self.spread):
            return "same"
        return "better" if (self.change > 0) == self.unit.endswith("/s") else "worse"


def changes(readings: dict[str, list[Reading]]) -> list[Change]:
    """By the peers "old" and "new"; rows that only one of them has are left out. Pure."""
    by_name: dict[str, dict[str, list[Reading]]] = {}
    for peer, found in readings.items():
        for reading in found:
            by_name.setdefault(reading.name, {}).setdefault(peer, []).append(reading)
    return [_change(name, peers["old"], peers["new"]) for name, peers in by_name.items() if len(peers) == 2]


def _change(name: str, old: list[Reading], new: list[Reading]) -> Change:
    values = [[reading.value for reading in one] for one in (old, new)]
    return Change(
        name, new[0].unit, median(values[0]), median(values[1]), max(map(spread, values)), min(map(len, values))
    )


def spread(values: list[float]) -> float:
    middle = median(values)
    return (max(values) - min(values)) / middle if middle else 0.0


def program_of(revision: str) -> tuple[str, Path]:
    """The short commit and its `ottla`, made where it lacks."""
    commit = _git("rev-parse", "--short=12", f"{revision}^{{commit}}")
    tree = TREES / commit
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        _git("worktree", "prune")
        _git("worktree", "add", "--detach", str(tree), commit)
    subprocess.run(["make", "env"], cwd=tree, check=True, timeout=ENVIRONMENT_TIMEOUT_S)
    return commit, tree / ".venv" / "bin" / "ottla"


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=TOP, check=True, capture_output=True, text=True).stdout.strip()


def report(found: list[Change], *, old: str, new: str, console: Console) -> None:
    table = Table(title=f"Ottla {old} and {new} (medians)", title_justify="left")
    for heading in ("workload", "unit", "old", "new", "change", "spread", ""):
        table.add_column(heading, justify="left" if heading in ("workload", "unit", "") else "right")
    for row in found:
        shown = (figure(row.old), figure(row.new), f"{row.change:+.1%}", f"{row.spread:.1%}", row.verdict)
        table.add_row(row.name, row.unit, *shown)
    console.print(table)
    worse = [row.name for row in found if row.verdict == "worse"]
    console.print(f"worse: {', '.join(worse) or 'none'}", highlight=False, soft_wrap=True)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**vars(row), "change": row.change, "verdict": row.verdict} for row in found]
    OUT.write_text(json.dumps({"old": old, "new": new, "rows": rows}, indent=1) + "\n")
