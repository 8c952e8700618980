"""What a node says of itself while its data loop does not turn, with a clock that the test moves."""

import asyncio
from pathlib import Path

import pytest
from ottla.config import configure
from ottla.handover import Handover, LoopLane
from ottla.node import Node
from ottla.node.brokering import BrokerPart
from ottla.node.node import ALIVE_PULSE_SECONDS_MAX, READY_PULSE_SECONDS_MAX, STOP_PULSE_SECONDS_MAX, DataLoopStuck
from ottla.storage.workers.worker import InlineWorker
from ottla.system import System
from support.ports import free_port


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return round(self.now * 1000)


class HoldableLane(LoopLane):
    """Keeps what is posted while it is held."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[tuple[object, ...]] | None = None

    def post(self, callback, *arguments):  # type: ignore[no-untyped-def]
        if self.kept is None:
            super().post(callback, *arguments)
        else:
            self.kept.append((callback, *arguments))


async def started(folder: Path, clock: Clock) -> tuple[Node, HoldableLane]:
    given = {"node.id": "1", "log.dirs": str(folder), "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
    data = HoldableLane()
    node = Node(
        configure(given, dict.fromkeys(given, "--set")),
        System(clock=clock),
        handover=Handover(control=LoopLane(), data=data, clock=clock),
        make_broker=lambda config, system: BrokerPart(config, system, make_worker=InlineWorker),
    )
    assert node.not_serving() == "node 1 starts" and node.not_alive() is None
    await node.start()
    return node, data


def test_ready_and_alive_hang_on_the_pulse(tmp_path: Path) -> None:
    async def scene() -> None:
        clock = Clock()
        node, _ = await started(tmp_path, clock)
        assert node.not_serving() is None and node.not_alive() is None
        clock.now += READY_PULSE_SECONDS_MAX + 0.5
        assert node.not_serving() == "the data loop of broker 1 has not turned for 2.0 s"
        assert node.not_alive() is None
        clock.now += ALIVE_PULSE_SECONDS_MAX
        assert node.not_alive() == "the data loop of broker 1 has not turned for 62.0 s"
        node.handover.pulse.start()
        assert node.not_serving() is None and node.not_alive() is None
        await node.stop()

    asyncio.run(scene())


def test_a_stop_does_not_wait_for_ever_for_a_data_loop_that_is_held(tmp_path: Path) -> None:
    async def scene() -> None:
        clock = Clock()
        node, data = await started(tmp_path, clock)
        data.kept = []
        node.handover.pulse.stop()
        stopping = asyncio.ensure_future(node.stop())
        clock.now += STOP_PULSE_SECONDS_MAX - 1.0
        await asyncio.sleep(0.1)
        assert not stopping.done()
        clock.now += 2.0
        with pytest.raises(DataLoopStuck, match="not turned for 11 s"):
            await asyncio.wait_for(stopping, 10)
        kept, data.kept = data.kept, None  # what it did not do, so that the test leaves nothing behind
        for callback, *arguments in kept:
            data.post(callback, *arguments)
        await node._stop_data(lambda part: part.close(-1))

    asyncio.run(scene())
