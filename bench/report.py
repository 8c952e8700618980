"""The report: JSON for machines, a table for people, one last line for both."""

import json
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

from rich.console import Console
from rich.table import Table

from bench.rows import Row, worst

OUT = Path(__file__).parent / "out" / "report.json"


def write_json(rows: list[Row], path: Path = OUT) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"rows": [row.as_json() for row in rows]}, indent=1) + "\n")


def print_table(rows: list[Row], console: Console) -> None:
    table = Table(title="Ottla beside Apache Kafka 4.1.1 (medians)", title_justify="left")
    letters = legend(rows)
    for heading in ("workload", "unit", "kafka", "ottla", "ratio", "goal", "limited by", "differs", ""):
        table.add_column(heading, justify="right" if heading in ("kafka", "ottla", "ratio", "goal") else "left")
    for row in rows:
        table.add_row(
            row.name, row.unit, figure(row.kafka), figure(row.ottla), f"{row.ratio:.2f}", str(row.goal or ""),
            limits(row), mark(row, letters), verdict(row),
        )  # fmt: skip
    console.print(table)
    for text, letter in letters.items():
        console.print(f"{letter}: {text}", highlight=False)
    for row in rows:
        if row.limited_by:
            console.print(f"[dim]{row.name}: {row.limited_by}[/dim]", highlight=False)


def legend(rows: Sequence[Row]) -> dict[str, str]:
    """A letter for each text about what differs."""
    texts = dict.fromkeys(row.differs for row in rows if row.differs)
    return dict(zip(texts, ascii_lowercase, strict=False))


def mark(row: Row, letters: dict[str, str]) -> str:
    return letters.get(row.differs, "")


def limits(row: Row) -> str:
    """One word where it is the same for both, else both: "kafka broker, ottla client"."""
    words = {peer: limit.split(" ")[0] for peer, limit in row.limits.items() if limit}
    if len(set(words.values())) <= 1:
        return next(iter(words.values()), "")
    return ", ".join(f"{peer} {word}" for peer, word in words.items())


def print_last_line(rows: list[Row], console: Console) -> None:
    found = worst(rows)
    line = f"worst ratio: {found.name} {found.ratio:.2f}" if found else "worst ratio: none 0.00"
    console.print(line, highlight=False, soft_wrap=True)


def verdict(row: Row) -> str:
    if row.goal is None or not row.judged:
        return ""
    if row.excused and not row.met:
        return "[yellow]client's limit[/yellow]"
    return "[green]ok[/green]" if row.ok else "[red]short[/red]"


def figure(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value else "-"
