"""The only way between the two loops of a node.

control    quorum, active controller, registration, heartbeats, control service, probes
data       listeners, partitions, replication, coordinators, questions between brokers

The loops share immutable values only (images, changes, commands, replies), and each runs in a thread of its own, so
that the control loop goes on while the data loop is held. In tests and simulations both may be lanes of one loop.
What is posted to a lane happens there in the order of posting.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from ottla.errors import Code, KafkaError
from ottla.ports import Clock

__all__ = ["Handover", "Lane", "LoopLane", "Pulse"]

T = TypeVar("T")

# Calls from one loop to the other that are not answered yet. Those who would make more are refused.
CALLS_MAX = 10_000
PULSE_SECONDS = 0.2


class Lane(Protocol):
    def post(self, callback: Callable[..., object], *arguments: object) -> None:
        """Run the callback there, soon. From any thread, without waiting; nothing happens on a loop that has ended."""

    def is_here(self) -> bool:
        """Whether the caller runs on this lane."""


class LoopLane:
    """A loop in the thread that makes this object."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def post(self, callback: Callable[..., object], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: its side of the node has ended
            self._loop.call_soon_threadsafe(callback, *arguments)

    def is_here(self) -> bool:
        return threading.get_ident() == self._thread


class Pulse:
    """Written by the data loop, read by the control loop: when the data loop last turned, and what it has seen.

    `version` is that of the metadata that is in force on the data loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beat_at = clock.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self.version = 0

    def start(self) -> None:
        """On the data loop, which beats from now on."""
        self._beat_at = self._clock.monotonic()
        self._timer = asyncio.get_running_loop().call_later(PULSE_SECONDS, self.start)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def has_seen(self, version: int) -> None:
        """Metadata of this version is in force on the data loop."""
        self.version = version

    def age_s(self) -> float:
        return max(self._clock.monotonic() - self._beat_at, 0.0)


class Handover:
    def __init__(self, *, control: Lane, data: Lane, clock: Clock) -> None:
        self.control = control
        self.data = data
        self.pulse = Pulse(clock)
        self._to_control = _Calls(source=data, target=control)
        self._to_data = _Calls(source=control, target=data)

    @classmethod
    def on_one_loop(cls, clock: Clock) -> "Handover":
        """Both lanes on the running loop."""
        lane = LoopLane()
        return cls(control=lane, data=lane, clock=clock)

    async def on_data(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` answers on the data loop. For the control loop; as long as the data loop is held, it waits."""
        return await self._to_data.call(work)

    async def on_control(self, work: Callable[[], Awaitable[T]]) -> T:
        """What `work` answers on the control loop. For the data loop."""
        return await self._to_control.call(work)


class _Calls:
    """Of one direction. Counted on the source; run as tasks on the target."""

    def __init__(self, *, source: Lane, target: Lane) -> None:
        self._source = source
        self._target = target
        self._under_way = 0

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        assert self._source.is_here(), "called from the wrong loop"
        if self._under_way >= CALLS_MAX:
            text = f"{CALLS_MAX} calls between the loops of this node are not answered yet; try again."
            raise KafkaError(Code.request_timed_out, text)
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        call = _Call(work, answer, self._source, self._target)
        self._under_way += 1
        try:
            self._target.post(call.begin)
            return await answer
        except asyncio.CancelledError:
            self._target.post(call.cancel)
            raise
        finally:
            self._under_way -= 1
            del answer, call  # an error's traceback refers to this frame: a cycle would leave both to the collector


class _Call(Generic[T]):
    """`answer` belongs to the source; everything else to the target after `begin`."""

    def __init__(
        self, work: Callable[[], Awaitable[T]], answer: "asyncio.Future[T]", source: Lane, target: Lane
    ) -> None:
        self._work = work
        self._answer = answer
        self._source = source
        self._target = target
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        assert self._target.is_here(), "begun on the wrong loop"
        self._task = asyncio.ensure_future(_answered(self._work))
        self._task.add_done_callback(self._done)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _done(self, task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            error: BaseException | None = KafkaError(Code.request_timed_out, "This node stops.")
        else:
            error = task.exception()
        self._source.post(self._settle, None if error is not None else task.result(), error)

    def _settle(self, result: T | None, error: BaseException | None) -> None:
        assert self._source.is_here(), "answered on the wrong loop"
        if self._answer.done():  # the caller was cancelled
            return
        if error is not None:
            self._answer.set_exception(error)
        else:
            self._answer.set_result(result)  # type: ignore[arg-type]


async def _answered(work: Callable[[], Awaitable[T]]) -> T:
    """Without a reference to the call, which an error's traceback would share."""
    return await work()
