"""The table "Long runs" at the end of bench/RESULTS.md: one row for each run of `make test-long`."""

from dataclasses import dataclass
from pathlib import Path

from bench.results import PATH

__all__ = ["LongRun", "add"]

HEADING = "## Long runs"
COLUMNS = ("date", "commit", "run", "result", "minutes", "seen")


@dataclass(frozen=True)
class LongRun:
    """`seen` is what the run said of itself, in one line."""

    date: str
    commit: str
    name: str
    passed: bool
    minutes: float
    seen: str

    def cells(self) -> tuple[str, ...]:
        result = "passed" if self.passed else "FAILED"
        return (self.date, self.commit, self.name, result, f"{self.minutes:.1f}", self.seen.replace("|", "/"))


def add(run: LongRun, *, path: Path = PATH) -> None:
    """Appends a row; makes the file and the table when there is none."""
    text = path.read_text() if path.exists() else ""
    path.write_text(with_row(text, run.cells()))


def with_row(text: str, cells: tuple[str, ...]) -> str:
    """Pure. The table is the last thing in the file."""
    row = f"| {' | '.join(cells)} |\n"
    if HEADING in text:
        return text.rstrip("\n") + "\n" + row
    head = f"{HEADING}\n\n| {' | '.join(COLUMNS)} |\n| {' | '.join(['---'] * len(COLUMNS))} |\n"
    return (text.rstrip("\n") + "\n\n" if text.strip() else "") + head + row
