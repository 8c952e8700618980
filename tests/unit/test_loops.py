"""Which loop takes gRPC's events, and what becomes of them when the data loop is held."""

import asyncio
import functools
import socket

import pytest
from ottla import loops
from ottla.handover import Pulse
from ottla.loops import ControlLoop, GrpcLoop

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


async def is_waited_for(queue: PollerCompletionQueue) -> bool:
    """Whether an event is taken as soon as it is there."""
    before = queue.handled
    queue.write_socket.send(b"1")
    await asyncio.sleep(0.05)
    return queue.handled > before


def test_the_control_loop_waits_for_grpc_only_while_the_data_loop_does_not_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loops, "GRPC_POLL_SECONDS", 60.0)  # the test itself polls

    async def scene() -> None:
        loop, clock, queue = asyncio.get_running_loop(), Clock(), PollerCompletionQueue()
        assert isinstance(loop, ControlLoop)
        queue.bind(loop)
        assert await is_waited_for(queue), "a node without a data loop waits always"
        pulse = Pulse(clock)
        loop.share_grpc(pulse)
        assert not await is_waited_for(queue)
        loop.share_grpc(pulse)
        assert queue.handled == 2, "what lay there is found by a poll"
        clock.now += 2 * loops.GRPC_PULSE_SECONDS_MAX
        loop.share_grpc(pulse)
        assert await is_waited_for(queue)
        pulse.start()  # it beats again
        loop.share_grpc(pulse)
        assert not await is_waited_for(queue)
        pulse.stop()
        queue.close(loop)

    with asyncio.Runner(loop_factory=ControlLoop) as runner:
        runner.run(scene())


def test_all_announcements_are_read_in_one_turn():
    """gRPC's handler reads one byte and takes all events: by itself it lets the socket fill up."""

    async def scene() -> None:
        loop, queue = asyncio.get_running_loop(), PollerCompletionQueue()
        queue.write_socket.send(b"1" * 250)
        queue.bind(loop)
        await asyncio.sleep(0.05)
        assert queue.handled == 1
        queue.write_socket.send(b"1")
        await asyncio.sleep(0.05)
        assert queue.handled == 2, "the next one is seen"
        queue.close(loop)

    for factory in (GrpcLoop, ControlLoop):
        with asyncio.Runner(loop_factory=factory) as runner:
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
