"""Share groups by seeds, on virtual time: every record is delivered, and none again that was accepted.

Seeds as sim.playing says: OTTLA_SIM_SHARES (24) of them. A failure prints its seed;
`python -m sim.run SEED --shares --log`, or OTTLA_SIM_SEED=…, replays it exactly.
"""

import os

import pytest
from sim.options import WIDE
from sim.playing import played, seeds_from
from sim.share_world import ShareWorld


def check(seed: int) -> ShareWorld:
    return played(ShareWorld(seed), replay=f"python -m sim.run {seed} --shares --log")


def test_a_seed_replays_exactly() -> None:
    first, second = check(7), check(7)
    assert first.referee.trace == second.referee.trace
    assert first.accepted == second.accepted > 0


def test_new_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_SIM_SEED"):
        check(int(fixed))
        return
    base, count = seeds_from(WIDE), int(os.environ.get("OTTLA_SIM_SHARES", "24"))
    accepted = sum(check(seed).accepted for seed in range(base, base + count))
    with capsys.disabled():
        print(f"\nshare group simulation: {count} histories, seeds {base}..{base + count - 1}, {accepted} accepted")
    assert accepted > count
