"""Measures the loop time of requests from clients with a quota: the steps of their handlers, without waits."""

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any

from ottla.api.binding import Handle
from ottla.api.call import Answer, Call, Deferred
from ottla.api.registry import Result
from ottla.ports import Clock

__all__ = ["measured"]


class Stopwatch:
    """Runs from the beginning; what it shows is what was not taken yet."""

    __slots__ = ("_clock", "_running_since", "_spent_s")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._spent_s = 0.0
        self._running_since: float | None = clock()

    def resume(self) -> None:
        self._running_since = self._clock()

    def pause(self) -> None:
        self._gather()
        self._running_since = None

    def take(self) -> float:
        self._gather()
        spent, self._spent_s = self._spent_s, 0.0
        return spent

    def _gather(self) -> None:
        if self._running_since is not None:
            now = self._clock()
            self._spent_s += now - self._running_since
            self._running_since = now


def measured(handle: Handle, request: Any, call: Call, clock: Clock) -> Result:
    """Call the handler so that `call.spent_s` says what it took so far."""
    watch = Stopwatch(clock.monotonic)
    call.spent_s = watch.take
    result = handle(request, call)
    if isinstance(result, list) or result is None:
        return result
    watch.pause()
    return result if isinstance(result, Deferred) else _go_on(Steps(result, watch))


async def _go_on(steps: "Steps") -> Answer | Deferred:
    answer: Answer | Deferred = await steps
    return answer


class Steps:
    """An awaitable that runs another one and stops the time between its steps."""

    def __init__(self, inner: Awaitable[Answer | Deferred], watch: Stopwatch) -> None:
        self._inner = inner
        self._watch = watch

    def __await__(self) -> Generator[Any, Any, Answer | Deferred]:
        steps = self._inner.__await__()
        step: Callable[[], Any] = partial(next, steps)
        while True:
            self._watch.resume()
            try:
                awaited = step()
            except StopIteration as done:
                answer: Answer | Deferred = done.value
                return answer
            finally:
                self._watch.pause()
            try:
                yield awaited
            except BaseException as error:  # cancellation too: the handler has to get it
                step = partial(steps.throw, error)
            else:
                step = partial(next, steps)
