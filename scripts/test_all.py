"""`make test` and `make test-all`: chapters of tests, each with its budget, and a table of how long they took.

`make test` is what one machine can prove without Kubernetes; `make test-all` runs the same chapters and then the long
ones. Every test file is in exactly one chapter (tests/unit/scripts/test_tiers.py checks that). A chapter that fails
does not stop the others; the exit code is 1 then. `make test ARGS="unit fleet"` runs only those chapters.
"""

import argparse
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
LOCAL_PIPELINE = ("tests/fleet/test_pipeline.py", "tests/fleet/test_up.py")
# The longest first: of two that run beside each other, none idles.
FAULTS = ("tests/fleet/test_faults.py", "tests/fleet/test_stuck_loop.py", "tests/fleet/test_lost_log_dir.py")
ATTACKS_ON_FLEETS = tuple(f"tests/hostile/test_{what}.py" for what in ("regex", "memory", "large_requests"))
QUICK = ("memory", "regex", "mutated_requests", "files", "coordinators", "lookups")
QUICK_ATTACKS = tuple(f"tests/hostile/test_{what}.py" for what in QUICK)
SIMULATED_COORDINATORS = tuple(f"tests/sim/test_{what}_sim.py" for what in ("group", "txn", "share", "share_state"))
SIMULATED_SECURITY = "tests/sim/test_security_sim.py"
# What clients need to come in is in `make test`; what changes while they are there, and the tools, are here.
LOGINS = ("tls_renewal", "reauthentication", "oauth_login", "go_login", "delegation_tokens", "rotation_under_load")
USERS = ("scram_users", "scram_format", "scram_cli")
RIGHTS = ("acls_cli", "acls_clients", "acls_enforced")
SECURITY = (
    *(f"tests/compat/test_{what}.py" for what in (*LOGINS, *USERS, *RIGHTS)),
    "tests/fleet/test_secure_fleet.py",
    SIMULATED_SECURITY,
)
COORDINATED = ("*fire*", "*quota*", "*group*", "*transaction*")
# As they are named, not by how many tests a file has: the one long test would begin last, and one of two would idle.
AS_NAMED = (*SHARED, "--no-loadscope-reorder")


@dataclass(frozen=True)
class Chapter:
    name: str
    budget_minutes: float
    commands: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Tier:
    """Budgets are of a machine with two quiet cores where everything is downloaded already."""

    budget_minutes: float
    chapters: tuple[Chapter, ...]


@dataclass(frozen=True)
class Result:
    chapter: Chapter
    passed: bool
    minutes: float


def coordinated() -> tuple[str, ...]:
    """Tests of what lives in coordinators: of fleets, the longest first, and of one broker."""
    folders = (Path("tests/fleet"), Path("tests/compat"))
    found = [path for folder in folders for each in COORDINATED for path in sorted(folder.glob(f"{each}.py"))]
    # Share groups go with the others of their folder, whose chapters have time left.
    return tuple(dict.fromkeys(str(path) for path in found if "share" not in path.name))


def in_a_fleet() -> tuple[str, ...]:
    """Those of one broker that are run against three as well; transactions have tests of their own there."""
    wanted = ("test_groups_[jlmp]*", "test_*consumer_groups_848")
    return tuple(str(path) for each in wanted for path in sorted(Path("tests/compat").glob(f"{each}.py")))


def without(*paths: str) -> tuple[str, ...]:
    return tuple(f"--ignore={path}" for path in paths)


ON_ONE_MACHINE = (
    Chapter("check and unit", 2.5, (("scripts/check.py",), (*PYTEST, "tests/unit", "-n", "2"))),
    Chapter(
        "simulation",
        2,
        ((*PYTEST, "tests/sim", "tests/golden", "-n", "2", *without(*SIMULATED_COORDINATORS, SIMULATED_SECURITY)),),
    ),
    Chapter("one-broker clients", 3, ((*PYTEST, "tests/compat", *SHARED, *without(*coordinated(), *SECURITY)),)),
    Chapter("hostile clients", 2.5, ((*PYTEST, *QUICK_ATTACKS),)),
    Chapter(
        "fleet",
        3,
        ((*PYTEST, "tests/fleet", *SHARED, *without(FAILOVER, *FAULTS, *LOCAL_PIPELINE, *SECURITY, *coordinated())),),
    ),
    Chapter("local pipeline", 2, ((*PYTEST, *LOCAL_PIPELINE),)),
)
LONGER = (
    Chapter("faults", 6, ((*PYTEST, *FAULTS, *AS_NAMED), (*PYTEST, FAILOVER))),
    Chapter("simulated coordinators", 2, ((*PYTEST, *SIMULATED_COORDINATORS, "-n", "2"),)),
    Chapter("more hostile clients", 5.5, ((*PYTEST, "tests/hostile", *without(*QUICK_ATTACKS)),)),
    Chapter("hostile clients of a fleet", 4, ((*PYTEST, "--fleet", *ATTACKS_ON_FLEETS),)),
    Chapter(
        "coordinators",
        8,
        ((*PYTEST, *coordinated(), *AS_NAMED), (*PYTEST, "--fleet", *in_a_fleet(), *AS_NAMED)),
    ),
    Chapter("security", 4, ((*PYTEST, *SECURITY, *AS_NAMED),)),
    Chapter("from version to version", 2.5, ((*PYTEST, "tests/versions"),)),
    Chapter("Kubernetes and Spark", 13, ((*PYTEST, "tests/cluster", "--durations=12"),)),
)
TIERS = {"test": Tier(12, ON_ONE_MACHINE), "test-all": Tier(60, ON_ONE_MACHINE + LONGER)}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=TIERS, default="test-all")
    parser.add_argument("chapters", nargs="*", help="words of the names of those to run; all when none is given")
    given = parser.parse_args(arguments)
    tier = TIERS[given.tier]
    chosen = [one for one in tier.chapters if not given.chapters or any(word in one.name for word in given.chapters)]
    if not chosen:
        parser.error(f"no chapter is named so; there are: {', '.join(one.name for one in tier.chapters)}")
    results = [play(chapter) for chapter in chosen]
    show(given.tier, results, budget_minutes=tier.budget_minutes, whole=chosen == list(tier.chapters))
    return 0 if all(one.passed for one in results) else 1


def play(chapter: Chapter) -> Result:
    Console().rule(f"{chapter.name} (budget {chapter.budget_minutes:g} min)")
    started = time.monotonic()
    passed = all(list(map(run, chapter.commands)))  # a list: the second runs also when the first failed
    return Result(chapter, passed, (time.monotonic() - started) / 60)


def show(tier: str, results: list[Result], *, budget_minutes: float, whole: bool) -> None:
    """With sums below; those of some chapters only are not compared with the budget."""
    table = Table(title=f"make {tier}", title_justify="left", show_footer=True)
    failed = sum(not one.passed for one in results)
    minutes = sum(one.minutes for one in results)
    table.add_column("chapter", footer="all" if whole else "those chosen")
    table.add_column("result", footer=f"{failed} failed" if failed else "passed")
    table.add_column("minutes", footer=shown(minutes, budget_minutes if whole else None), justify="right")
    table.add_column("budget", footer=f"{budget_minutes:g}", justify="right")
    for one in results:
        budget = one.chapter.budget_minutes
        result = "passed" if one.passed else "FAILED"
        table.add_row(one.chapter.name, result, shown(one.minutes, budget), f"{budget:g}")
    Console().print(table)


def shown(minutes: float, budget_minutes: float | None) -> str:
    over = budget_minutes is not None and minutes > budget_minutes
    return f"{minutes:.1f}{' (over budget)' if over else ''}"


def run(command: tuple[str, ...]) -> bool:
    return subprocess.run([sys.executable, *command]).returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
