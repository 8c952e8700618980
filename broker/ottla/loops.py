"""The two loops of a process: the control loop in the main thread, the data loop in a thread of its own.

gRPC has one queue of events per process, and every loop that uses it waits for the same socket: each message of
replication would wake the control loop too, which then fights the data loop for the interpreter's lock (measured with
one record at a time to three brokers: a third more CPU). So the control loop waits for that socket only while the data
loop does not turn. Otherwise the data loop takes all events and hands over those of the control loop.

gRPC's poller thread writes a byte into that socket for every event; its handler takes all events that are there, but
reads one byte. On a loop whose turns are long the bytes pile up until the socket is full. Then the poller thread stands
still until three quarters of them are read, one in each turn: replication stopped for up to 1.4 s so, while the loop
itself turned every 4 ms. `GrpcLoop` reads them all.
"""

import asyncio
import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvloop

from ottla.handover import LoopLane, Pulse

__all__ = ["ControlLoop", "DataLoop", "GrpcLoop", "forgive_grpc"]

GRPC_PULSE_SECONDS_MAX = 0.5
GRPC_POLL_SECONDS = 0.1
END_SECONDS_MAX = 5.0
ANNOUNCED_MAX = 4096  # bytes; a socket of a common size is full with 278


class GrpcLoop(uvloop.Loop):
    """Takes all of gRPC's events in one turn, and all the bytes that announce them."""

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        if _is_grpc(callback):
            callback, args = functools.partial(_take_events, fd, callback, *args), ()
        super().add_reader(fd, callback, *args)


def _take_events(announced: socket.socket, handle: Callable[..., object], *args: Any) -> None:
    """The bytes first, then the events: gRPC adds an event before its byte, so none is left without one.

    The last byte is the handler's own. Another loop may have taken some of them meanwhile; it takes their events too.
    """
    with contextlib.suppress(BlockingIOError):
        waiting = len(announced.recv(ANNOUNCED_MAX, socket.MSG_PEEK))
        if waiting > 1:
            announced.recv(waiting - 1)
    handle(*args)


class ControlLoop(GrpcLoop):
    """Waits for gRPC's events itself until `share_grpc`, and from then on while the data loop's pulse is old.

    In between it polls for them: a data loop that is only slow delays them by GRPC_POLL_SECONDS at most.
    """

    _grpc: tuple[Any, Callable[..., object]] | None = None
    takes_grpc = True

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        if _is_grpc(callback):
            self._grpc = fd, callback
            if not self.takes_grpc:
                return
        super().add_reader(fd, callback, *args)

    def remove_reader(self, fd: Any) -> None:  # type: ignore[override]
        if self._grpc is not None and self._grpc[0] is fd:
            self._grpc = None
        super().remove_reader(fd)

    def share_grpc(self, pulse: Pulse) -> None:
        """A data loop with this pulse uses gRPC as well."""
        waits = pulse.age_s() > GRPC_PULSE_SECONDS_MAX
        if self._grpc is not None:
            self._wait_or_poll(*self._grpc, waits=waits)
        self.takes_grpc = waits
        self.call_later(GRPC_POLL_SECONDS, self.share_grpc, pulse)

    def _wait_or_poll(self, fd: Any, callback: Callable[..., object], *, waits: bool) -> None:
        if waits and not self.takes_grpc:
            super().add_reader(fd, callback)
        elif not waits and self.takes_grpc:
            super().remove_reader(fd)
        if not waits:
            with contextlib.suppress(BlockingIOError):
                _take_events(fd, callback)


def _is_grpc(callback: object) -> bool:
    """As grpc.aio registers itself. A version that does it otherwise costs time, nothing else."""
    function = callback.func if isinstance(callback, functools.partial) else callback
    return type(getattr(function, "__self__", None)).__name__ == "PollerCompletionQueue"


def forgive_grpc() -> None:
    """Of two loops that wait for gRPC's socket the second finds it empty."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if not isinstance(context.get("exception"), BlockingIOError):
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(handle)


class DataLoop(contextlib.AbstractContextManager["DataLoop"]):
    """Runs in its thread from entering to leaving; a loop that is held then is left behind."""

    def __init__(self) -> None:
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ottla-data", daemon=True)
        self.lane: LoopLane
        self._stop: Callable[[], None]

    def __enter__(self) -> "DataLoop":
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.lane.post(self._stop)
        self._thread.join(END_SECONDS_MAX)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=GrpcLoop) as runner:
            runner.run(self._turn())

    async def _turn(self) -> None:
        stop = asyncio.Event()
        self.lane, self._stop = LoopLane(), stop.set
        forgive_grpc()
        self._started.set()
        await stop.wait()
