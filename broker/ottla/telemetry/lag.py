"""How late a loop's timers come: what everybody on that loop waited."""

import asyncio

from ottla.ports import Clock

__all__ = ["LoopLag"]

PERIOD_SECONDS = 0.25
WINDOW_SECONDS = 30.0


class LoopLag:
    """Begun on the loop it measures, read from any thread. The largest of the present window and of the one before."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window_from = clock.monotonic()
        self._largest_s = self._before_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def largest_s(self) -> float:
        return max(self._largest_s, self._before_s)

    def start(self) -> None:
        due = self._clock.monotonic() + PERIOD_SECONDS
        self._timer = asyncio.get_running_loop().call_later(PERIOD_SECONDS, self._came, due)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _came(self, due: float) -> None:
        self.note(self._clock.monotonic() - due)
        self.start()

    def note(self, late_s: float) -> None:
        now = self._clock.monotonic()
        if now - self._window_from > WINDOW_SECONDS:
            self._window_from, self._before_s, self._largest_s = now, self._largest_s, 0.0
        self._largest_s = max(self._largest_s, late_s)
