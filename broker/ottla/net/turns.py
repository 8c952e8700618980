"""Turns at sending: many clients that fetch much at once take turns, so that small requests are served between them."""

import asyncio
from collections import deque
from collections.abc import Callable

__all__ = ["Turns"]

TURN_BYTES_MAX = 1024 * 1024  # read from files and sent before the loop looks at other things: about a millisecond


class Turns:
    """Of one loop. A turn begins with its first byte and ends when the loop comes round."""

    def __init__(self) -> None:
        self._spent_bytes = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_over(self) -> bool:
        return self._spent_bytes >= TURN_BYTES_MAX

    def spend(self, size: int) -> None:
        if not self._spent_bytes:
            asyncio.get_running_loop().call_soon(self._begin)
        self._spent_bytes += size

    def wait(self, resume: Callable[[], None]) -> None:
        """Call when the turn is over; `resume` is called in a later one, after those who waited before."""
        self._waiting.append(resume)

    def _begin(self) -> None:
        self._spent_bytes = 0
        while self._waiting and not self.is_over:
            self._waiting.popleft()()
        if self._waiting and not self._spent_bytes:
            asyncio.get_running_loop().call_soon(self._begin)
