"""States of share-partitions by seeds, on virtual time: what was acknowledged stays so; who was replaced is refused.

OTTLA_SIM_SHARE_STATES (70) histories with new seeds (see sim.playing). A failure prints its seed;
`python -m sim.run SEED --share-states --log`, or OTTLA_SIM_SEED=…, replays it exactly.
"""

import os

import pytest
from sim.options import NARROW, WIDE, Options
from sim.playing import played, seeds_from
from sim.share_state_world import ShareStateWorld

# Histories that found a sabotage (sim.mutations), with the options of then (see sim.options).
KEPT_SEEDS = (
    19,  # a late update took an acknowledgement back
    10004,  # an update of a state that had been replaced was taken
)


def check(seed: int, options: Options = WIDE) -> ShareStateWorld:
    narrow = " --narrow" if options == NARROW else ""
    return played(ShareStateWorld(seed, options), replay=f"python -m sim.run {seed} --share-states{narrow} --log")


@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_known_seeds(seed: int) -> None:
    check(seed, NARROW)


def test_a_seed_replays_exactly() -> None:
    first, second = check(7), check(7)
    assert first.referee.trace == second.referee.trace
    assert first.answers == second.answers > 0


def test_new_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_SIM_SEED"):
        check(int(fixed))
        return
    base, count = seeds_from(NARROW), int(os.environ.get("OTTLA_SIM_SHARE_STATES", "70"))
    answers = sum(check(seed, NARROW).answers for seed in range(base, base + count))
    with capsys.disabled():
        print(
            f"\nshare state simulation: {count} histories, seeds {base}..{base + count - 1}, {answers} changes answered"
        )
    assert answers > count
