"""Transactions by seeds, on virtual time: exactly once, whatever crashes between any two steps of their ends.

Seeds as sim.playing says: OTTLA_SIM_TRANSACTIONS (72) of them, in shares that run beside each other. A failure prints
its seed; `python -m sim.run SEED --transactions --log`, or OTTLA_SIM_SEED=…, replays it exactly.
"""

import os
import time
from collections import Counter

import pytest
from sim.options import NARROW, WIDE, Options
from sim.playing import played, seeds_from
from sim.txn_steps import Step
from sim.txn_world import TransactionWorld

SHARES = 4
SEEDS_PER_STEP_MAX = 8
# Histories that found a sabotage (sim.mutations), with the options of then (see sim.options).
KEPT_SEEDS = (
    10010,  # the decision answered before it was committed
    10016,  # markers sent before the decision was committed
    10026,  # markers confirmed before they were committed
)


FIVE = Options(fetching=True, cleaning=True, cold=True, pauses=True, blackouts=True)  # not WIDE, which may grow
KEPT_WITH_OPTIONS = (
    # compaction took all batches of a leader epoch, a crash took the epoch: a follower kept what was never committed
    (103728976953344, FIVE),
)


def check(seed: int, options: Options = WIDE, *, only: Step | None = None) -> TransactionWorld:
    chosen = "--transactions" + (f" --only {only.name}" if only is not None else "")
    chosen += " --narrow" if options == NARROW else ""
    return played(TransactionWorld(seed, options, only=only), replay=f"python -m sim.run {seed} {chosen} --log")


@pytest.mark.parametrize("seed", KEPT_SEEDS)
def test_known_seeds(seed: int) -> None:
    check(seed, NARROW)


@pytest.mark.parametrize(("seed", "options"), KEPT_WITH_OPTIONS)
def test_known_seeds_with_options(seed: int, options: Options) -> None:
    check(seed, options)


def test_a_seed_replays_exactly() -> None:
    first, second = check(7), check(7)
    assert first.referee.trace == second.referee.trace
    assert first.committed > 0


@pytest.mark.parametrize("step", Step)
def test_a_crash_at_each_step(step: Step) -> None:
    """Nothing else goes wrong; the histories go on until it has happened."""
    for seed in range(SEEDS_PER_STEP_MAX):
        if check(seed, only=step).steps_of_ends.crashes[step]:
            return
    raise AssertionError(f"nothing crashed when {step.value}")


@pytest.mark.parametrize("share", range(SHARES))
def test_new_seeds(share: int, capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_SIM_SEED"):
        check(int(fixed))
        return
    count = -(-int(os.environ.get("OTTLA_SIM_TRANSACTIONS", "72")) // SHARES)
    options = WIDE if share % 2 else NARROW
    base, begun = seeds_from(options) + share * count, time.process_time()
    committed, crashes = 0, Counter[Step]()
    for seed in range(base, base + count):
        world = check(seed, options)
        committed, crashes = committed + world.committed, crashes + world.steps_of_ends.crashes
    each_s = (time.process_time() - begun) / count
    with capsys.disabled():
        print(
            f"\ntransaction simulation {share + 1}/{SHARES}: {count} histories, seeds {base}..{base + count - 1}, "
            f"{committed} transactions committed, {crashes.total()} crashes at {len(crashes)} of {len(Step)} steps of "
            f"their ends, {each_s:.2f} CPU s each"
        )
    assert committed > count
