"""What a node has promised outlives a power loss after any step: nothing leaves it before it is on the platter."""

import uuid
from collections.abc import Callable
from random import Random

import pytest
from ottla.raft.core.messages import Entry, EntryKind, HardState, Member, Snapshot, Voter
from ottla.raft.store import RaftStore, Stored
from sim.disk import Crash, Platter, SimDisk

SEED = (Voter(1, uuid.UUID(int=1), "localhost:9190"),)
VOTED = HardState(2, Member(2, uuid.UUID(int=5)), SEED)
FILE_BYTES_MAX = 200  # a few entries: files roll on the way
SEEDS = range(20)


def entry(index: int, term: int = 1) -> Entry:
    return Entry(index, term, EntryKind.DATA, f"entry {index}.{term}".encode())


STEPS: tuple[Callable[[RaftStore], None], ...] = (
    lambda store: store.persist(None, None, [entry(1), entry(2)]),
    lambda store: store.persist(VOTED, None, []),
    lambda store: store.persist(None, None, [entry(index) for index in range(3, 20)]),
    lambda store: store.persist(None, None, [entry(12, 2), entry(13, 2)]),
    lambda store: store.save_snapshot(Snapshot(10, 1, SEED, b"ten")),
    lambda store: store.drop_before(8),
    lambda store: store.persist(None, None, [entry(14, 2)]),
    lambda store: store.persist(None, Snapshot(30, 2, SEED, b"thirty"), []),
    lambda store: store.persist(None, None, [entry(31, 2)]),
)


OPERATIONS = 50  # of the disk, in all steps


def opened(platter: Platter, *, crash_in: int | None = None) -> tuple[RaftStore, Stored]:
    disk = SimDisk(platter, now_ms=lambda: 0, on_crash=lambda: None)
    disk.crash_in = crash_in
    store = RaftStore(disk, "/data", file_bytes_max=FILE_BYTES_MAX)
    return store, store.load(SEED)


def after(steps: int, platter: Platter, *, power_loss: bool) -> Stored:
    store, _ = opened(platter)
    for step in STEPS[:steps]:
        step(store)
    if power_loss:
        platter.lose_power()
    return opened(platter)[1]


@pytest.mark.parametrize("steps", range(len(STEPS) + 1))
def test_promises_outlive_a_power_loss(steps: int) -> None:
    expected = after(steps, Platter(Random(0)), power_loss=False)
    for seed in SEEDS:
        assert after(steps, Platter(Random(seed)), power_loss=True) == expected, f"seed {seed}"


@pytest.mark.parametrize("crash_in", range(1, OPERATIONS + 1))
def test_what_a_killed_process_left_behind_is_a_promise_once_it_was_read(crash_in: int) -> None:
    """It may be in memory only, written and not synced: the node that finds it votes and acknowledges by it."""
    for seed in SEEDS:
        platter = Platter(Random(seed))
        try:
            store, _ = opened(platter, crash_in=crash_in)
            for step in STEPS:
                step(store)
        except Crash:
            pass
        else:
            pytest.fail("the steps take fewer operations")
        found = opened(platter)[1]
        platter.lose_power()
        assert opened(platter)[1] == found, f"seed {seed}"
