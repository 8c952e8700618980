"""An asyncio loop on which time jumps to the next deadline, and on which a dead process runs no further.

Whatever a simulated process starts (tasks, timers, callbacks) inherits its contextvars, so the loop knows the owner of
every callback. Those of a process that has ended are never run: no `finally`, no clean-up, as with kill -9.
"""

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple, TypeVar

__all__ = ["OWNER", "Process", "SkewedClock", "Slowness", "Stuck", "VirtualLane", "VirtualLoop", "VirtualThreads"]

T = TypeVar("T")
WALL_MS_AT_START = 1_700_000_000_000
CLOSED_TIMES_MAX = 10
TICK_S = 1e-6
STEPS_MAX = 400_000  # a history that takes more goes round in circles


class Stuck(Exception):
    """Nothing is left to do, or there is no end of it."""


class Slowness(NamedTuple):
    """One callback in so many (`chance`) takes up to `seconds_max`."""

    random: Random
    chance: float
    seconds_max: float


class Process:
    """One life of a node. What it does on its data lane waits while that lane is held."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.held_until: float | None = None
        self.paused_until: float | None = None  # the same for all of it
        self.slowness: Slowness | None = None  # of its data lane
        self.backlog: list[asyncio.Handle] = []  # of the data lane while it is held
        self.context = contextvars.copy_context()
        self.context.run(OWNER.set, self)
        self.data_context = self.context.copy()
        self.data_context.run(ON_DATA.set, True)


OWNER: contextvars.ContextVar[Process | None] = contextvars.ContextVar("owner", default=None)
ON_DATA: contextvars.ContextVar[bool] = contextvars.ContextVar("on_data", default=False)


class VirtualLoop(asyncio.BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self.steps = 0
        self.failures: list[dict[str, Any]] = []
        self.outside = contextvars.copy_context()  # of nobody: the network, clients, the referee
        self._is_over = False
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self._kept: list[tuple[asyncio.Task[Any], Process | None]] = []
        self.set_task_factory(self._make_task)
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    def time(self) -> float:
        return self._now

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> "asyncio.Task[Any]":
        """Kept to the end: a task that is collected runs its `finally`, at a moment that nobody chose."""
        task = asyncio.Task(coro, loop=self, **options)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
        context = options.get("context")
        self._kept.append((task, OWNER.get() if context is None else context.get(OWNER)))
        return task

    def unseen_errors(self) -> list[BaseException]:
        """Of tasks that failed in a process that goes on, where nobody has retrieved it."""
        failed = [task for task, owner in self._kept if task.done() and (owner is None or owner.alive)]
        unseen = [task for task in failed if task._log_traceback]  # type: ignore[attr-defined]
        return [error for task in unseen if (error := task.exception()) is not None]

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers  # type: ignore[attr-defined]
        while not ready and timers:
            self._now = max(self._now, timers[0][0])
            while timers and timers[0][0] <= self._now:
                handle = heapq.heappop(timers)[2]
                handle._scheduled = False  # type: ignore[attr-defined]
                if not handle._cancelled:  # type: ignore[attr-defined]
                    ready.append(handle)
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            raise Stuck("nothing is left to happen")
        self.steps += 1
        self._now += TICK_S  # else what is due in less time than a float can distinguish would never be
        if self.steps > STEPS_MAX:
            raise Stuck(f"no end after {self.steps} steps, at {self._now:.3f} s")
        for _ in range(len(ready)):
            handle = ready.popleft()
            owner = handle._context.get(OWNER)
            if handle._cancelled or (owner is not None and not owner.alive):
                continue
            if owner is None:
                handle._run()
            elif owner.paused_until is not None or (owner.held_until is not None and handle._context.get(ON_DATA)):
                owner.backlog.append(handle)
            else:
                handle._run()
                if owner.slowness is not None and handle._context.get(ON_DATA):
                    self._took(owner, owner.slowness)

    def hold_data(self, process: Process, seconds: float) -> None:
        """The data lane of the process does nothing for so long, and then everything in order."""
        process.held_until = max(process.held_until or 0.0, self._now + seconds)
        self.later(seconds, self._release, process)

    def pause(self, process: Process, seconds: float) -> None:
        """All of the process, as SIGSTOP or a stalled machine does it. What arrives meanwhile waits."""
        process.paused_until = max(process.paused_until or 0.0, self._now + seconds)
        self.later(seconds, self._release, process)

    def _took(self, process: Process, slowness: "Slowness") -> None:
        """What the data lane has just done took time, in which only others went on."""
        if slowness.random.random() < slowness.chance:
            self.hold_data(process, slowness.random.random() * slowness.seconds_max)

    def _release(self, process: Process) -> None:
        """What is held by the other of the two goes back to the backlog, in its order, when its turn comes."""
        held, paused = process.held_until, process.paused_until
        if held is not None and held <= self._now:
            process.held_until = None
        if paused is not None and paused <= self._now:
            process.paused_until = None
        if (held, paused) != (process.held_until, process.paused_until):
            backlog, process.backlog = process.backlog, []
            self._ready.extendleft(reversed(backlog))  # type: ignore[attr-defined]

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def dispose(self) -> None:
        """The world is over: what was still under way is dropped here, not by the collector in the next history.

        What is dropped may still make tasks in its `finally`, as if the loop ran: they never begin, and go as well.
        """
        self._is_over = True
        asyncio._set_running_loop(self)
        try:
            while self._kept:
                kept, self._kept = self._kept, []
                for task, _ in kept:
                    if not task.done():
                        _drop(task.get_coro())
        finally:
            asyncio._set_running_loop(None)
        self._ready.clear()  # type: ignore[attr-defined]
        self._timers.clear()
        self.close()

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_over:
            self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self._is_over:
            self._timers_made += 1
            heapq.heappush(self._timers, (when, self._timers_made, handle))
        return handle

    def later(self, seconds: float, action: Callable[..., object], *arguments: object) -> None:
        """Outside of all processes."""
        self.call_later(seconds, action, *arguments, context=self.outside)

    def within(self, process: Process, coro: Coroutine[Any, Any, T], *, data: bool = False) -> "asyncio.Task[T]":
        context = process.data_context if data else process.context
        return self.create_task(coro, context=context.copy())


def _drop(coro: Any) -> None:
    """A coroutine may wait again in its `finally`; then it is closed again."""
    for _ in range(CLOSED_TIMES_MAX):
        try:
            coro.close()
            return
        except BaseException:  # whatever it says: it is not there any more
            continue


class VirtualLane:
    """The control loop or the data loop of a simulated process: whose lane a callback is of, its context says."""

    def __init__(self, loop: VirtualLoop, process: Process, *, data: bool) -> None:
        self._loop = loop
        self._data = data
        self._context = process.data_context if data else process.context

    def post(self, callback: Callable[..., object], *arguments: object) -> None:
        self._loop.call_soon(callback, *arguments, context=self._context.copy())

    def is_here(self) -> bool:
        return ON_DATA.get() is self._data


class SkewedClock:
    """Wall time off by a while; monotonic time that runs a little fast or slow."""

    def __init__(self, loop: VirtualLoop, *, offset_ms: int, rate: float) -> None:
        self._loop = loop
        self._offset_ms = offset_ms
        self._rate = rate

    def wall_ms(self) -> int:
        return WALL_MS_AT_START + self._offset_ms + int(self._loop.time() * self._rate * 1000)

    def monotonic(self) -> float:
        return 1000.0 + self._loop.time() * self._rate


class VirtualThreads:
    """Work happens at once somewhere between now and `delay_max_s`; its result arrives somewhat later."""

    def __init__(self, loop: VirtualLoop, random: Random) -> None:
        self._loop = loop
        self._random = random
        self.delay_max_s = 0.001

    def run(self, work: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        self._loop.call_later(self._random.random() * self.delay_max_s, self._work, future, work, arguments)
        return future

    def _work(self, future: "asyncio.Future[T]", work: Callable[..., T], arguments: tuple[object, ...]) -> None:
        try:
            result = work(*arguments)
        except Exception as error:
            self._done(future, future.set_exception, error)
        else:
            self._done(future, future.set_result, result)

    def _done(self, future: "asyncio.Future[T]", settle: Callable[[Any], None], outcome: object) -> None:
        def arrive() -> None:
            if not future.done():
                settle(outcome)

        self._loop.call_later(self._random.random() * self.delay_max_s, arrive)
