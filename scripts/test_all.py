"""`make test`: every chapter of the tests, each with its budget, and a table of how long they took.

A chapter that fails does not stop the others; the exit code tells. `test_all.py unit compat` runs only those chapters.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

PYTEST = ("-m", "pytest")
SHARED = ("-n", "2", "--dist", "loadscope")
# It measures time, so nothing else may run beside it.
FAILOVER = "tests/fleet/test_failover.py"
SPARK = ("tests/fleet/test_pipeline.py", "tests/fleet/test_up.py")
COORDINATED = ("*fire*", "*quota*", "*group*", "*transaction*")
# As they are named, not by how many tests a file has: the one long test would begin last, and one of two would idle.
AS_NAMED = (*SHARED, "--no-loadscope-reorder")


@dataclass(frozen=True)
class Chapter:
    name: str
    budget_minutes: float
    commands: tuple[tuple[str, ...], ...]


def coordinated() -> tuple[str, ...]:
    """Tests of what lives in coordinators: of fleets, the longest first, and of one broker."""
    folders = (Path("tests/fleet"), Path("tests/compat"))
    found = [path for folder in folders for each in COORDINATED for path in sorted(folder.glob(f"{each}.py"))]
    # Share groups go with the others of their folder, whose chapters have room.
    return tuple(dict.fromkeys(str(path) for path in found if "share" not in path.name))


def in_a_fleet() -> tuple[str, ...]:
    """Those of one broker that are run against three as well; transactions have tests of their own there."""
    wanted = ("test_groups_[jlmp]*", "test_*consumer_groups_848")
    return tuple(str(path) for each in wanted for path in sorted(Path("tests/compat").glob(f"{each}.py")))


def without(*paths: str) -> tuple[str, ...]:
    return tuple(f"--ignore={path}" for path in paths)


CHAPTERS = (
    Chapter("check and unit", 3, (("scripts/check.py",), (*PYTEST, "tests/unit", "-n", "2"))),
    Chapter("simulation", 6, ((*PYTEST, "tests/sim", "tests/golden", "-n", "2"),)),
    Chapter("one-broker clients", 6, ((*PYTEST, "tests/compat", *SHARED, *without(*coordinated())),)),
    Chapter("hostile clients", 4, ((*PYTEST, "tests/hostile"),)),
    Chapter(
        "fleet and faults",
        7,
        (
            (*PYTEST, "tests/fleet", *SHARED, *without(FAILOVER, *SPARK, *coordinated())),
            (*PYTEST, FAILOVER),
        ),
    ),
    Chapter(
        "coordinators",
        8,
        ((*PYTEST, *coordinated(), *AS_NAMED), (*PYTEST, "--fleet", *in_a_fleet(), *AS_NAMED)),
    ),
    Chapter("Kubernetes and Spark", 12, ((*PYTEST, *SPARK), (*PYTEST, "tests/cluster", "--durations=12"))),
)


def main(chosen: list[str]) -> int:
    console = Console()
    table = Table(title="make test", title_justify="left")
    for heading, side in (("chapter", "left"), ("result", "left"), ("minutes", "right"), ("budget", "right")):
        table.add_column(heading, justify=side)  # type: ignore[arg-type]
    failed = []
    for chapter in CHAPTERS:
        if chosen and not any(word in chapter.name for word in chosen):
            continue
        console.rule(f"{chapter.name} (budget {chapter.budget_minutes:g} min)")
        started = time.monotonic()
        ok = all(list(map(run, chapter.commands)))  # a list: the second runs also when the first failed
        minutes = (time.monotonic() - started) / 60
        over = " (over budget)" if minutes > chapter.budget_minutes else ""
        table.add_row(chapter.name, "passed" if ok else "FAILED", f"{minutes:.1f}{over}", f"{chapter.budget_minutes:g}")
        if not ok:
            failed.append(chapter.name)
    console.print(table)
    return 1 if failed else 0


def run(command: tuple[str, ...]) -> bool:
    return subprocess.run([sys.executable, *command]).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
