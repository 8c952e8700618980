"""Lines about connections are limited: a stranger who sends nonsense must not fill the disk with them."""

import logging
import time

__all__ = ["LineLimit"]

WINDOW_SECONDS = 10.0
LINES_MAX = 100


class LineLimit(logging.Filter):
    """Lets `lines_max` lines through in each window; the first one of the next tells how many were left out.

    What failed here is counted apart: nobody can hide it behind nonsense.
    """

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        super().__init__()
        self._nonsense, self._failures = Window(lines_max), Window(lines_max)

    def filter(self, record: logging.LogRecord) -> bool:
        window = self._failures if record.levelno >= logging.ERROR else self._nonsense
        return window.lets_through(record)


class Window:
    def __init__(self, lines_max: int) -> None:
        self._lines_max = lines_max
        self._began = 0.0
        self._lines = 0

    def lets_through(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._began >= WINDOW_SECONDS:
            left_out = self._lines - self._lines_max
            self._began, self._lines = now, 0
            if left_out > 0:
                record.msg = f"{record.msg} ({left_out} lines before this one were left out)"
        self._lines += 1
        return self._lines <= self._lines_max
