"""bench/RESULTS.md: the figures of one run with their date, commit and machine, and what differs beside them."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.report import figure, legend, limits, mark
from bench.rows import Row

PATH = Path(__file__).parent / "RESULTS.md"
HEADINGS = ("workload", "unit", "kafka", "ottla", "ratio", "goal", "limited by", "differs", "met")


def write(rows: Sequence[Row], *, rounds: int, path: Path = PATH) -> None:
    """What other runs have added below stays."""
    figures = markdown(rows, date=datetime.now(UTC).date().isoformat(), where=machine(), run=of_run(rounds))
    path.write_text(figures + added(path.read_text() if path.exists() else ""))


def added(text: str) -> str:
    """Pure: everything from the second heading on."""
    _, heading, rest = text.partition("\n## ") if not text.startswith("## ") else ("", "\n", text)
    return heading + rest


def markdown(rows: Sequence[Row], *, date: str, where: str, run: str) -> str:
    """Pure."""
    letters = legend(rows)
    lines = ["# Ottla beside Apache Kafka 4.1.1", "", f"{date}, {run}; {where}. Medians.", ""]
    lines += [_line(HEADINGS), _line(["---"] * len(HEADINGS))]
    lines += [_line(_cells(row, letters)) for row in rows]
    lines += ["", "What differs between the two:", *(f"- {letter}: {text}" for text, letter in letters.items())]
    return "\n".join(lines) + "\n"


def _cells(row: Row, letters: dict[str, str]) -> list[str]:
    met = "" if not row.judged else "excused: the client is the limit of both" if row.excused else str(row.met).lower()
    figures = [figure(row.kafka), figure(row.ottla), f"{row.ratio:.2f}", str(row.goal or "")]
    return [row.name, row.unit, *figures, limits(row), mark(row, letters), met]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"{cores} cores, {memory_gb:.0f} GB, {system}"


def of_run(rounds: int) -> str:
    return f"commit {commit()}, {rounds} rounds"


def commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=PATH.parent)
    return done.stdout.strip() or "unknown"
