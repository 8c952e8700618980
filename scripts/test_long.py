"""`make test-long`: the runs that take longer than anybody waits for, one after the other, on a quiet machine.

`make test-long ARGS="soak faults"` runs those; `ARGS="--list"` shows them. What each run printed is in bench/out; its
date, commit and result go to bench/RESULTS.md, under "Long runs". A run that fails does not stop the others.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
OUT = ROOT / "bench" / "out"
sys.path.insert(0, str(ROOT))

from bench import long_runs, results  # noqa: E402 (the path comes first)

FAULTS = "tests/fleet/test_faults.py"
COPYING = "tests/compat/test_copying_while_rebalancing.py"
SEEN_CHARACTERS_MAX = 120
OUTCOMES = (" passed", " failed", " error")


@dataclass(frozen=True)
class Run:
    """Arguments are pytest's."""

    name: str
    expected_minutes: float
    about: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


RUNS = (
    Run("soak", 62, "an hour of mixed load on three brokers: nothing grows", ("tests/long/test_soak.py",)),
    Run(
        "mutations",
        30,
        "a million damaged requests within 256 MB",
        ("tests/hostile/test_mutated_requests.py", "--mutated-requests", "1000000"),
    ),
    Run(
        "logins",
        30,
        "a million damaged logins and a quarter of a million handshakes: nobody comes in, memory stays flat",
        ("tests/hostile/test_before_login.py", "--mutated-logins", "1000000"),
    ),
    Run("copies", 40, "copying exactly once in groups that rebalance 100 times", (COPYING, "--copy-rounds", "50")),
    Run("copies-fleet", 50, "the same against three brokers", (COPYING, "--copy-rounds", "50", "--fleet")),
    Run(
        "histories",
        15,
        "5,000 simulated histories of the fleet, 1,000 of transactions, 1,000 of rules and credentials",
        ("tests/sim", "-n", "2", "--dist", "worksteal"),
        {
            "OTTLA_SIM_HISTORIES": "5000",
            "OTTLA_SIM_TRANSACTIONS": "1000",
            "OTTLA_SIM_SECURITY": "1000",
            "OTTLA_SIM_NEW_SEEDS": "1",
        },
    ),
    Run("faults", 33, "half an hour of faults: nothing lost", (FAULTS, "--fault-minutes", "30")),
    Run(
        "faults-secure",
        33,
        "the same with TLS on every hop, SCRAM and ACLs",
        (FAULTS, "--fault-minutes", "30", "--secure"),
    ),
    Run(
        "fire",
        24,
        "twenty minutes of kills under exactly-once copies",
        ("tests/fleet/test_transactions_under_fire.py", "--fire-minutes", "20"),
    ),
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the runs and what they would take")
    parser.add_argument("runs", nargs="*", metavar="RUN", help=f"{', '.join(run.name for run in RUNS)}; all by default")
    given = parser.parse_args(arguments)
    if unknown := sorted(set(given.runs) - {run.name for run in RUNS}):
        parser.error(f"no such run: {', '.join(unknown)}; there are {', '.join(run.name for run in RUNS)}")
    chosen = [run for run in RUNS if not given.runs or run.name in given.runs]
    if given.list:
        show_list(chosen)
        return 0
    commit = results.commit()  # before the first row makes the tree differ from it
    done = [play(run, commit) for run in chosen]
    show_results(chosen, done)
    return 0 if all(one.passed for one in done) else 1


def play(run: Run, commit: str) -> long_runs.LongRun:
    Console().rule(f"{run.name}: {run.about} (about {run.expected_minutes:g} min)")
    OUT.mkdir(parents=True, exist_ok=True)
    begun, started = datetime.now(UTC), time.monotonic()
    log = OUT / f"{run.name}-{begun:%Y%m%d-%H%M%S}.log"
    lines: list[str] = []
    with log.open("w") as file, process_of(run) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            file.write(line)
            lines = [*lines[-20:], line]
    minutes = (time.monotonic() - started) / 60
    passed = process.returncode == 0
    done = long_runs.LongRun(begun.date().isoformat(), commit, run.name, passed, minutes, verdict(lines))
    long_runs.add(done)  # at once: the next run may take hours
    return done


def process_of(run: Run) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "pytest", "-s", *run.arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", **run.environment}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, errors="replace", **both)  # type: ignore


def verdict(lines: Iterable[str]) -> str:
    """What pytest said last: `1 passed in …`."""
    said = [line.strip(" =\n") for line in lines if " in " in line and any(word in line for word in OUTCOMES)]
    return said[-1][:SEEN_CHARACTERS_MAX] if said else "ended without a verdict"


def show_list(runs: Iterable[Run]) -> None:
    table = Table("run", "about", "minutes", "pytest")
    for run in runs:
        settings = "".join(f"{key}={value} " for key, value in run.environment.items())
        table.add_row(run.name, run.about, f"{run.expected_minutes:g}", settings + " ".join(run.arguments))
    Console().print(table)


def show_results(runs: Iterable[Run], done: Iterable[long_runs.LongRun]) -> None:
    table = Table("run", "result", "minutes", "expected", "seen", title="make test-long", title_justify="left")
    for run, one in zip(runs, done, strict=True):
        result = "passed" if one.passed else "FAILED"
        table.add_row(run.name, result, f"{one.minutes:.1f}", f"{run.expected_minutes:g}", one.seen)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
