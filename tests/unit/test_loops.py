"""Which loop takes gRPC's events, and what becomes of them when the data loop is held."""

import asyncio
import functools
import socket

from ottla.handover import Pulse
from ottla.loops import GRPC_LOOK_SECONDS, GRPC_PULSE_SECONDS_MAX, ControlLoop

PATIENCE_S = 10.0


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return 0


class PollerCompletionQueue:
    """gRPC's, as far as a loop sees it."""

    def __init__(self) -> None:
        self.read_socket, self.write_socket = socket.socketpair()
        self.read_socket.setblocking(False)
        self.handled = 0

    def _handle_events(self, _: asyncio.AbstractEventLoop) -> None:
        self.read_socket.recv(1)
        self.handled += 1

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_reader(self.read_socket, functools.partial(self._handle_events, loop))

    def close(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.remove_reader(self.read_socket)
        self.read_socket.close()
        self.write_socket.close()


async def until(condition: object) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0.01)


async def events_are_taken(queue: PollerCompletionQueue) -> bool:
    """Longer than it takes the loop to look at the pulse."""
    before = queue.handled
    queue.write_socket.send(b"1")
    await asyncio.sleep(3 * GRPC_LOOK_SECONDS)
    return queue.handled > before


def test_the_control_loop_takes_grpcs_events_only_while_the_data_loop_does_not_turn():
    async def scene() -> None:
        loop, clock, queue = asyncio.get_running_loop(), Clock(), PollerCompletionQueue()
        assert isinstance(loop, ControlLoop)
        queue.bind(loop)
        assert await events_are_taken(queue), "a node without a data loop takes them always"
        pulse = Pulse(clock)
        loop.share_grpc(pulse)
        assert not await events_are_taken(queue)
        clock.now += 2 * GRPC_PULSE_SECONDS_MAX
        await until(lambda: queue.handled == 2)  # the one that was left lying
        assert await events_are_taken(queue)
        pulse.start()  # it beats again
        await asyncio.sleep(3 * GRPC_LOOK_SECONDS)
        assert not await events_are_taken(queue)
        pulse.stop()
        queue.close(loop)

    with asyncio.Runner(loop_factory=ControlLoop) as runner:
        runner.run(scene())


def test_other_readers_are_none_of_its_business():
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ControlLoop)
        loop.share_grpc(Pulse(Clock()))
        near, far = socket.socketpair()
        heard = asyncio.Event()
        loop.add_reader(near, heard.set)
        far.send(b"1")
        async with asyncio.timeout(PATIENCE_S):
            await heard.wait()
        loop.remove_reader(near)
        near.close()
        far.close()

    with asyncio.Runner(loop_factory=ControlLoop) as runner:
        runner.run(scene())
