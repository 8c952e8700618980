"""The broker's own quorum, controller, replication and storage as a fleet of three, by seeds, on virtual time.

Seeds as sim.playing says: OTTLA_SIM_HISTORIES (300) of them, in shares that run beside each other. A failure prints the
seed; `python -m sim.run SEED --log`, or OTTLA_SIM_SEED=…, replays it exactly.
"""

import os
import subprocess
import sys
import time

import pytest
from sim.invariants import Broken
from sim.options import NARROW, WIDE, Options
from sim.playing import played, seeds_from
from sim.world import World

SHARES = 10
# Histories that once broke a rule, with what they found, and with the options that they were found with: what the
# simulation has learned since is off for them (see sim.options).
KEPT_SEEDS = (
    5,
    146,
    1026,
    4,  # a hole between two segments after a power loss
    125,  # the same: acknowledged records lost
    143,
    127,  # a stop without all log dirs is no clean one
    10032,  # a log that left while a thread flushed it took its log dir offline
    173,  # a topic made again under its old name, and a power loss
    238985854779410,  # the old and the new topic of one name in two log dirs
    1700000451,  # an epoch that had been cut off came back from its checkpoint: replicas parted below the watermark
    2100000700,  # a power loss brought back what had been cut off, below the watermark of the checkpoint
    910000316,  # a log without the file that names its topic was taken for the new topic's
    3200000965,  # a power loss after a clean stop tore an index, which was trusted: the log was taken for empty
)


FIVE = Options(fetching=True, cleaning=True, cold=True, pauses=True, blackouts=True)  # not WIDE, which may grow
KEPT_WIDE_SEEDS = (
    888000010,  # a power loss took the end of a segment of a compacted log, and the hole was taken for compaction's
    777000602,  # a topic that nobody had deleted in time, under another policy: a fault of the simulation
    244981857714198,  # producers forgotten: their last batches were compacted away before they were durable
    38912352583689,  # the same
    999000101,  # a long log of small segments takes its consumer more than a minute: a fault of the simulation
    4400000105,  # a leader that copied a compacted log lacks an epoch whose batches are all gone: the same
    4600000213,  # a data loop that is held twice while its node stops: the same
    269122383447907,  # what a killed process had left in memory only was stated as durable, and a power loss took it
    213123602777729,  # the disk fails while a node reads its metadata log: it says so and does not start
    1863671679529,  # a replica that has not heard of a deletion yet is judged too early: a fault of the simulation
)


def check(seed: int, options: Options = WIDE) -> World:
    narrow = " --narrow" if options == NARROW else ""
    return played(World(seed, options), replay=f"python -m sim.run {seed}{narrow} --log")


@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_known_seeds(seed: int) -> None:
    check(seed, NARROW)


@pytest.mark.parametrize("seed", KEPT_WIDE_SEEDS)
def test_known_wide_seeds(seed: int) -> None:
    check(seed, FIVE)


def test_a_seed_replays_exactly() -> None:
    """Also in another process with other hashes."""
    first, second = check(140), check(140)
    assert first.referee.trace == second.referee.trace
    assert len(first.referee.trace) > 100
    environment = {**os.environ, "PYTHONHASHSEED": "140", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "sim.run", "140", "--trace"]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert again.stdout.splitlines()[:-1] == first.referee.trace


@pytest.mark.parametrize("share", range(SHARES))
def test_new_seeds(share: int, capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_SIM_SEED"):
        check(int(fixed))
        return
    count = -(-int(os.environ.get("OTTLA_SIM_HISTORIES", "300")) // SHARES)
    options = WIDE if share % 2 else NARROW
    base, begun = seeds_from(options) + share * count, time.process_time()
    acknowledged, seconds = 0, 0.0
    broken: list[Broken] = []
    for seed in range(base, base + count):
        try:
            world = check(seed, options)
        except Broken as error:  # said at once, and the search goes on: a long one may be ended before its end
            broken.append(error)
            with capsys.disabled():  # stderr: pytest-xdist shows nothing else of its workers before they end
                print(f"\nBROKEN: {error}", file=sys.__stderr__, flush=True)
        else:
            acknowledged, seconds = acknowledged + world.acknowledged, seconds + world.loop.time()
    each_s = (time.process_time() - begun) / count
    with capsys.disabled():
        print(
            f"\nfleet simulation {share + 1}/{SHARES}: {count} histories, seeds {base}..{base + count - 1}, "
            f"{seconds:.0f} virtual seconds, {acknowledged} records acknowledged, {each_s:.2f} CPU s each"
        )
    assert not broken, f"{len(broken)} of {count} histories broke: {broken[0]}"
    assert acknowledged > count
