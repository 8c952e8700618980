"""The table of long runs in bench/RESULTS.md, and what a new bench leaves of it; slopes of samples."""

from pathlib import Path

import pytest
from long.samples import Sample, plot, slope, slopes, table, write_csv

from bench import results
from bench.long_runs import COLUMNS, HEADING, LongRun, add, with_row
from scripts.test_long import ROOT, RUNS, verdict

ROW = ("2026-01-02", "abc", "soak", "passed", "60.0", "1 passed")


def test_a_row_makes_the_table_and_the_next_follows_it() -> None:
    once = with_row("", ROW)
    assert once.splitlines()[0] == HEADING and once.splitlines()[2] == f"| {' | '.join(COLUMNS)} |"
    twice = with_row(once, ROW)
    assert twice == once + once.splitlines()[-1] + "\n"


def test_a_table_goes_below_the_figures_and_a_new_bench_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    results.write([], rounds=1, path=path)
    figures = path.read_text()
    add(LongRun("2026-01-02", "abc", "soak", False, 61.25, "a | b"), path=path)
    both = path.read_text()
    assert both.startswith(figures) and both.endswith("| soak | FAILED | 61.2 | a / b |\n")
    results.write([], rounds=1, path=path)
    assert path.read_text() == both


def test_a_new_bench_leaves_a_table_that_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    add(LongRun("2026-01-02", "abc", "soak", True, 60, "1 passed"), path=path)
    alone = path.read_text()
    results.write([], rounds=1, path=path)
    assert path.read_text().endswith("\n\n" + alone)


def test_every_run_names_a_test_that_exists() -> None:
    assert len({run.name for run in RUNS}) == len(RUNS)
    assert [run.name for run in RUNS if not (ROOT / run.arguments[0]).exists()] == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["x\n", "== 1 passed in 3.2s ==\n"], "1 passed in 3.2s"),
        (["1 failed, 2 passed in 9s\n", "\n"], "1 failed, 2 passed in 9s"),
        (["Killed\n"], "ended without a verdict"),
    ],
)
def test_the_verdict_is_what_pytest_said_last(lines: list[str], said: str) -> None:
    assert verdict(lines) == said


def growing(per_minute: float) -> list[Sample]:
    return [Sample(minute, 0, 50 + max(0, minute - 10) * per_minute, 7, 3) for minute in range(61)]


def test_slopes_are_of_the_time_after_the_warm_up(tmp_path: Path) -> None:
    assert slope([]) == slope([(1, 1)]) == slope([(1, 1), (1, 3)]) == 0
    assert slopes(growing(0.3), 0, from_minute=10) == pytest.approx({"rss_mb": 0.3, "files": 0, "threads": 0})
    assert len(table(growing(0.3), every_minutes=10).splitlines()) == 1 + 7
    assert plot(growing(0.3), "rss_mb", 0).endswith("█ 65.0")
    assert plot(growing(0), "files", 0).count("▁") == 31
    write_csv(growing(1)[:2], tmp_path / "out" / "a.csv")
    assert (tmp_path / "out" / "a.csv").read_text().splitlines()[0] == "minute,broker,rss_mb,files,threads"
