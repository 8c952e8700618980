"""`ottla pipeline run sessions` against a fleet, any Kafka's: the exact answer, also when it is killed on the way."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from ottla_pipelines.sample.answer import closed_sessions, differences
from ottla_pipelines.sample.clicks import make_waves
from ottla_pipelines.sample.kafka import read_topic
from ottla_pipelines.sample.outcome import read_sessions
from support.fleet import FleetOf
from support.waiting import eventually

EVENTS, SEED = 3000, 11
RUN_S_MAX = 600.0


def command(fleet: FleetOf, folder: Path, *more: str) -> list[str]:
    place = ("--bootstrap-servers", fleet.bootstrap, "--folder", str(folder))
    return [sys.executable, "-m", "ottla", "pipeline", "run", "sessions", *place, *more]


def test_killed_on_the_way_and_still_exact(fleet: FleetOf, tmp_path: Path) -> None:
    """kill -9 after the first batch, so that the second run has the first one's records, offsets and state to heed."""
    sample, output = ("--events", str(EVENTS), "--seed", str(SEED)), tmp_path / "first.log"
    with open(output, "wb") as log:
        first = subprocess.Popen(
            command(fleet, tmp_path / "run", *sample), stdout=log, stderr=log, start_new_session=True
        )
    try:
        eventually(lambda: output.read_text() + state_of(first), lambda seen: "batch 0:" in seen, timeout_s=RUN_S_MAX)
    finally:
        os.killpg(first.pid, signal.SIGKILL)  # Spark's JVM too
        first.wait()
    again = subprocess.run(command(fleet, tmp_path / "run", *sample), capture_output=True, text=True, timeout=RUN_S_MAX)
    assert again.returncode == 0, again.stdout + again.stderr

    records = [record for wave in make_waves(seed=SEED, events=EVENTS) for record in wave]
    expected = closed_sessions(records)
    assert differences(expected, read_sessions(fleet.bootstrap, "sessions-result")) == []
    assert f"all {len(expected)} sessions are as they should be" in again.stdout
    assert sum(1 for _ in read_topic(fleet.bootstrap, "clicks")) == EVENTS, "the feeder went on where it was"
    assert_dead_letters(fleet)


def assert_dead_letters(fleet: FleetOf) -> None:
    """Every malformed record is there with its origin; twice is allowed, as everything from Spark's sink."""
    malformed = {}
    for message in read_topic(fleet.bootstrap, "clicks-dead-letter"):
        headers = dict(message.headers() or [])
        place = (int(headers["ottla.partition"]), int(headers["ottla.offset"]))
        malformed[place] = message.value()
    wave, _ = make_waves(seed=SEED, events=EVENTS)
    counts: dict[int, int] = {}
    expected = {}
    for record in wave:
        offset = counts.get(record.partition, 0)
        counts[record.partition] = offset + 1
        if record.click is None:
            expected[record.partition, offset] = record.value
    assert malformed == expected


def state_of(process: subprocess.Popen[bytes]) -> str:
    """Ends the waiting with what was seen, when it is over before it should be."""
    assert process.poll() is None, f"it ended by itself with {process.returncode}"
    return ""


def test_a_sample_does_not_mix_with_other_records(fleet: FleetOf, tmp_path: Path) -> None:
    done = subprocess.run(
        command(fleet, tmp_path / "other", "--events", "500", "--seed", "99"), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "topic clicks holds other records than 500 events of seed 99" in done.stderr
    assert "starting Spark" not in done.stdout, "told before anything is started"
