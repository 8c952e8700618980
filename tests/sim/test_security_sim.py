"""Rules and credentials by seeds, on virtual time: what is acknowledged stays, and what is removed does not come back.

Seeds as sim.playing says: OTTLA_SIM_SECURITY (30) of them. A failure prints its seed;
`python -m sim.run SEED --security --log`, or OTTLA_SIM_SEED=…, replays it exactly.
"""

import os

import pytest
from sim.options import WIDE
from sim.playing import played, seeds_from
from sim.security_world import SecurityWorld


def check(seed: int) -> SecurityWorld:
    return played(SecurityWorld(seed), replay=f"python -m sim.run {seed} --security --log")


def test_a_seed_replays_exactly() -> None:
    first, second = check(7), check(7)
    assert first.referee.trace == second.referee.trace
    assert first.changes == second.changes > 0


def test_new_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_SIM_SEED"):
        check(int(fixed))
        return
    base, count = seeds_from(WIDE), int(os.environ.get("OTTLA_SIM_SECURITY", "30"))
    changes = sum(check(seed).changes for seed in range(base, base + count))
    with capsys.disabled():
        print(f"\nsecurity simulation: {count} histories, seeds {base}..{base + count - 1}, {changes} changes")
    assert changes > 5 * count
