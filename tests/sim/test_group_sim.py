"""Groups by seeds, on virtual time: no partition owned twice in a generation or epoch, nor by two members of a KIP-848
group at once; no committed offset lost or gone back.

OTTLA_SIM_GROUPS (45) histories with new seeds (see sim.playing). A failure prints its seed;
`python -m sim.run SEED --groups --log`, or OTTLA_SIM_SEED=…, replays it exactly.
"""

import os

import pytest
from ottla.group.heartbeats import targets
from sim.group_world import GroupWorld
from sim.options import NARROW, WIDE, Options
from sim.playing import played, seeds_from

WIDE_HISTORIES = 24
ELSEWHERE_HISTORIES = 10


def check(seed: int, options: Options = WIDE) -> GroupWorld:
    narrow = " --narrow" if options == NARROW else ""
    return played(GroupWorld(seed, options), replay=f"python -m sim.run {seed} --groups{narrow} --log")


def test_a_seed_replays_exactly() -> None:
    first, second = check(7), check(7)
    assert first.referee.trace == second.referee.trace


def test_a_leader_from_the_elr_may_have_expired_a_member_that_its_predecessor_confirmed() -> None:
    """The referee objected; a coordinator that cannot commit confirms nothing for good."""
    check(52518994444301, NARROW)


def test_groups_whose_targets_are_computed_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of large groups are: in a thread, while the group goes on."""
    monkeypatch.setattr(targets, "INLINE_SIZE_MAX", 0)
    base = seeds_from(NARROW)
    for seed in range(base, base + ELSEWHERE_HISTORIES):
        check(seed, NARROW)


def test_new_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    if fixed := os.environ.get("OTTLA_SIM_SEED"):
        check(int(fixed))
        return
    wide = seeds_from(WIDE)
    for seed in range(wide, wide + WIDE_HISTORIES):
        check(seed)
    base, count, commits = seeds_from(NARROW), int(os.environ.get("OTTLA_SIM_GROUPS", "45")), 0
    for seed in range(base, base + count):
        world = check(seed, NARROW)
        commits += sum(committer.acknowledged + 1 for committer in world.topics.committers)
    with capsys.disabled():
        print(
            f"\ngroup simulation: {count} histories, seeds {base}..{base + count - 1}, {commits} commits acknowledged"
        )
    assert commits > count
