"""What production does to a fleet, one fault at a time: begun, endured and healed before its function returns."""

import contextlib
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from support.fleet import FleetOf
from support.waiting import eventually

Fault = Callable[[FleetOf, int, random.Random], None]

IN_SYNC_S = 90.0
# Shorter and longer than a broker's session, so that some are noticed and some are not.
OUTAGE_S = (0.3, 6.0)
# A slow machine: it runs for a short while between the pauses.
SLOW_BURSTS, SLOW_PAUSE_S, SLOW_RUN_S = 15, 0.25, 0.1
FULL_DISK_S = 6.0
BALLAST = "ballast"


def kill(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    fleet.members[victim].kill()
    time.sleep(chance.uniform(*OUTAGE_S))
    fleet.members[victim].start(wait=False)


def kill_all(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """Every process at once; what they wrote is in the page cache. They come back in any order."""
    for member in fleet.members:
        member.kill()
    for broker in chance.sample(list(fleet.ids), len(fleet.ids)):
        fleet.members[broker].start(wait=False)
        time.sleep(chance.uniform(0, 1))


def pause(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """It wakes up believing that it leads."""
    fleet.pause(victim)
    time.sleep(chance.uniform(*OUTAGE_S))
    fleet.resume(victim)


def slow_disk(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """Its writes and syncs take long; it may fall out of sync or be thought dead."""
    fleet.slow_disk(victim)
    time.sleep(chance.uniform(*OUTAGE_S))
    fleet.fast_disk(victim)


def slow_machine(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    for _ in range(SLOW_BURSTS):
        fleet.pause(victim)
        time.sleep(SLOW_PAUSE_S)
        fleet.resume(victim)
        time.sleep(SLOW_RUN_S)


def cut_off(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """From the other brokers, not from clients."""
    _cut(fleet, chance, lambda: fleet.isolate(victim))


def deaf(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """It sends and does not hear: only one way is cut."""
    _cut(fleet, chance, lambda: fleet.isolate(victim, sending=False))


def dumb(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    _cut(fleet, chance, lambda: fleet.isolate(victim, hearing=False))


def one_link(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """Two brokers do not reach each other while a third reaches both."""
    assert fleet.cells is not None
    other, cells = (victim + 1) % len(fleet.ids), fleet.cells

    def cut() -> None:
        cells.cut(victim, other)
        cells.cut(other, victim)

    _cut(fleet, chance, cut)


def full_disk(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """A broker may stop when its only disk is full; when there is space again it must start and go on."""
    assert fleet.cells is not None
    member = fleet.members[victim]
    ballast = fleet.cells.cells[victim].seen_inside(member.data_dir) / BALLAST
    fill(ballast)
    deadline = time.monotonic() + FULL_DISK_S
    while member.running and time.monotonic() < deadline:
        time.sleep(0.1)
    ballast.unlink()
    if not member.running:
        member.start(wait=False)


def rolling_restart(fleet: FleetOf, victim: int, chance: random.Random) -> None:
    """As an operator does it: the next one when all is in sync again."""
    for member in fleet.members:
        member.stop()
        member.start()
        fleet.wait_in_sync(IN_SYNC_S)


FAULTS: dict[str, Fault] = {
    "kill": kill,
    "pause": pause,
    "cut off": cut_off,
    "full disk": full_disk,
    "rolling restart": rolling_restart,
    "kill all": kill_all,
    "deaf": deaf,
    "slow disk": slow_disk,
    "slow machine": slow_machine,
    "dumb": dumb,
    "one link": one_link,
}


def fill(ballast: Path) -> None:
    """Take all the space that is left."""
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 20))
    with open(ballast, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(os.sysconf("SC_PAGE_SIZE")))


def all_run(fleet: FleetOf) -> None:
    """Brokers that a fault has stopped are started; then all answer."""
    for member in fleet.members:
        if not member.running:
            member.start(wait=False)
    eventually(lambda: [m.running for m in fleet.members], lambda seen: all(seen))


def _cut(fleet: FleetOf, chance: random.Random, cut: Callable[[], None]) -> None:
    cut()
    time.sleep(chance.uniform(*OUTAGE_S))
    fleet.mend()
