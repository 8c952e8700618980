"""Lines about connections are limited: a stranger who sends nonsense must not fill the disk with them."""

import logging
import time

__all__ = ["LineLimit"]

WINDOW_SECONDS = 10.0
LINES_MAX = 100


class LineLimit(logging.Filter):
    """Lets `LINES_MAX` lines through in each window; the first one of the next tells how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._window_began = 0.0
        self._lines = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._window_began >= WINDOW_SECONDS:
            left_out = self._lines - LINES_MAX
            self._window_began, self._lines = now, 0
            if left_out > 0:
                record.msg = f"{record.msg} ({left_out} lines before this one were left out)"
        self._lines += 1
        return self._lines <= LINES_MAX
