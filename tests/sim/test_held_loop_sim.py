"""Data loops that are held, on virtual time: nobody's vote and nobody else's session hangs on them."""

import asyncio
from itertools import pairwise
from random import Random

import pytest
from sim.faults import Faults
from sim.options import NARROW
from sim.playing import played, seeds_from
from sim.virtual_loop import Process, Slowness, VirtualLane, VirtualLoop
from sim.world import World

HISTORIES = 20
SESSION_S = 3.0
NOTICE_S = 0.5  # a heartbeat, the decision, and its way to the others


class Holds(Faults):
    """Nothing else goes wrong."""

    def deed(self) -> None:
        self.hold_data_loop()


class HeldWorld(World):
    def _make_faults(self) -> Faults:
        return Holds(self)


class LongHeldWorld(HeldWorld):
    """One data loop is held for longer than a session: that of the quorum's leader."""

    def _make_faults(self) -> Faults:
        return LongHold(self)


class LongHold(Faults):
    HELD_S = 6.0
    led_before: int
    is_begun = False

    def deed(self) -> None:
        if self.is_begun:
            return
        self.is_begun = True
        leader = self.referee.leaders[max(self.referee.leaders)]
        life = self.network.nodes[leader].life
        assert life is not None
        self.leader, self.led_before = leader, led_by(self._world, leader)
        self.loop.hold_data(life.process, self.HELD_S)
        self.loop.later(SESSION_S + NOTICE_S, self._judge)

    def _judge(self) -> None:
        if led := led_by(self._world, self.leader):
            self.referee.object(f"node {self.leader}, whose data loop is held, still leads {led} partitions")


def led_by(world: World, node: int) -> int:
    image = world.image()
    assert image is not None
    return sum(state.leader == node for topic in image.topics.values() for state in topic.partitions)


def seeds() -> range:
    base = seeds_from()
    return range(base, base + HISTORIES)


def test_the_quorum_keeps_its_leader_whatever_data_loops_do():
    for seed in seeds():
        world = played(HeldWorld(seed, NARROW), replay=f"HeldWorld({seed})")
        assert len(world.referee.leaders) == 1, f"seed {seed}: {world.referee.leaders}"


def test_partitions_leave_a_broker_whose_data_loop_is_held_within_a_session():
    moved = 0
    for seed in seeds():
        world = LongHeldWorld(seed, NARROW)
        played(world, replay=f"LongHeldWorld({seed})")
        faults = world.faults
        assert isinstance(faults, LongHold) and len(world.referee.leaders) == 1
        moved += faults.led_before
    assert moved > 0


@pytest.mark.parametrize("seconds", [1.0, 5.0])
def test_a_held_data_loop_does_nothing_and_then_everything_in_order(seconds):
    loop, process = VirtualLoop(), Process("one")
    data, control = (VirtualLane(loop, process, data=each) for each in (True, False))
    heard: list[tuple[str, int, float]] = []
    loop.hold_data(process, seconds)
    for number in range(3):
        data.post(lambda number=number: heard.append(("data", number, loop.time())))
        control.post(lambda number=number: heard.append(("control", number, loop.time())))
    loop.later(0.5, loop.hold_data, process, seconds - 0.5)  # once more, to the same moment
    loop.later(0.6, data.post, lambda: heard.append(("data", 3, loop.time())))
    asyncio.set_event_loop(loop)
    loop.run_until_complete(asyncio.sleep(seconds + 1))
    asyncio.set_event_loop(None)
    loop.dispose()
    assert [number for lane, number, _ in heard if lane == "data"] == [0, 1, 2, 3]
    assert all(at >= seconds for lane, _, at in heard if lane == "data")
    assert all(at < 0.1 for lane, _, at in heard if lane == "control")


def test_a_paused_process_does_nothing_and_then_everything_in_order():
    """On both lanes; what its data lane was held for meanwhile stays held."""
    loop, process = VirtualLoop(), Process("one")
    data, control = (VirtualLane(loop, process, data=each) for each in (True, False))
    heard: list[tuple[str, int, float]] = []
    loop.pause(process, 2.0)
    loop.hold_data(process, 3.0)
    for number in range(3):
        data.post(lambda number=number: heard.append(("data", number, loop.time())))
        control.post(lambda number=number: heard.append(("control", number, loop.time())))
    asyncio.set_event_loop(loop)
    loop.run_until_complete(asyncio.sleep(4.0))
    asyncio.set_event_loop(None)
    loop.dispose()
    assert [(lane, number) for lane, number, _ in heard] == [
        *(("control", number) for number in range(3)),
        *(("data", number) for number in range(3)),
    ]
    assert all((2.0 if lane == "control" else 3.0) <= at < 3.1 for lane, _, at in heard)


def test_a_slow_data_lane_takes_time_and_the_control_lane_does_not():
    loop, process = VirtualLoop(), Process("one")
    process.slowness = Slowness(Random(1), 1.0, 0.5)
    data, control = (VirtualLane(loop, process, data=each) for each in (True, False))
    heard: dict[str, list[float]] = {"data": [], "control": []}
    for _ in range(4):
        data.post(lambda: heard["data"].append(loop.time()))
        control.post(lambda: heard["control"].append(loop.time()))
    asyncio.set_event_loop(loop)
    loop.run_until_complete(asyncio.sleep(4.0))
    asyncio.set_event_loop(None)
    loop.dispose()
    assert max(heard["control"]) < 0.1
    assert len(heard["data"]) == 4 and all(later > earlier for earlier, later in pairwise(heard["data"]))
    assert heard["data"][-1] > 0.3
