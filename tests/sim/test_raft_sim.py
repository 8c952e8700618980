"""Seeded simulation of the Raft core with 1, 3 and 5 voters.

OTTLA_RAFT_SIM_HISTORIES (600) with new seeds (see sim.playing). A failure prints the seed; OTTLA_RAFT_SIM_SEED=…
replays it.
"""

import os
from random import Random

import pytest
from sim.playing import seeds_from
from sim.raft_world import Broken, World

VOTERS = (1, 3, 5)
STEPS_PER_HISTORY = 60
# Histories that once broke a rule.
KEPT_SEEDS = (71, 400547)


def play(seed: int) -> World:
    shape = Random(seed)
    world = World(
        seed,
        voters=shape.choice(VOTERS),
        observers=shape.choice((0, 0, 1, 2)),
        named_directories=shape.random() < 0.5,
    )
    for _ in range(STEPS_PER_HISTORY):
        world.step()
    world.check_progress()
    return world


def check(seed: int) -> World:
    try:
        return play(seed)
    except Exception as error:
        raise Broken(f"seed {seed}: {error!r}; replay with OTTLA_RAFT_SIM_SEED={seed}") from error


@pytest.mark.parametrize("seed", [*KEPT_SEEDS, *range(20)])
def test_known_seeds(seed: int) -> None:
    check(seed)


def test_a_seed_replays_exactly() -> None:
    first, second = check(4711), check(4711)
    assert first.rules.committed == second.rules.committed
    assert first.rules.leaders == second.rules.leaders
    assert first.now == second.now


def test_new_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_RAFT_SIM_SEED"):
        check(int(fixed))
        return
    base, count = seeds_from(), int(os.environ.get("OTTLA_RAFT_SIM_HISTORIES", "600"))
    committed = sum(len(check(seed).rules.committed) for seed in range(base, base + count))
    with capsys.disabled():
        print(f"\nraft simulation: {count} histories, seeds {base}..{base + count - 1}, {committed} entries committed")
    assert committed > count
