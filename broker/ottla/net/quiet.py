"""Lines about connections are limited: a stranger who sends nonsense must not fill the disk with them."""

import logging
import time

__all__ = ["LineLimit"]

WINDOW_SECONDS = 10.0
LINES_MAX = 100
# A client with wrong settings tries again for ever, about once a second, with one line each time.
EQUAL_WINDOW_SECONDS = 60.0
EQUAL_LINES_MAX = 5
DIFFERENT_LINES_MAX = 1_000  # that are kept for comparison


class LineLimit(logging.Filter):
    """Lets `lines_max` lines through in each window, and few that are equal; the first one of the next tells how many
    were left out.

    What failed here is counted apart: nobody can hide it behind nonsense.
    """

    def __init__(self, lines_max: int = LINES_MAX) -> None:
        super().__init__()
        self._nonsense, self._failures = Window(lines_max), Window(lines_max)
        self._repeats = Repeats()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            return self._failures.lets_through(record)
        return self._repeats.lets_through(record) and self._nonsense.lets_through(record)


class Repeats:
    def __init__(self) -> None:
        self._began = 0.0
        self._counts: dict[int, int] = {}  # by the hash of a line, which may be long
        self._left_out: dict[int, int] = {}  # in the window before

    def lets_through(self, record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - self._began >= EQUAL_WINDOW_SECONDS:
            left_out = {line: many - EQUAL_LINES_MAX for line, many in self._counts.items() if many > EQUAL_LINES_MAX}
            self._began, self._counts, self._left_out = now, {}, left_out
        line = hash(record.getMessage())
        count = self._counts.get(line, 0) + 1
        if count > 1 or len(self._counts) < DIFFERENT_LINES_MAX:
            self._counts[line] = count
        if left_out_here := self._left_out.pop(line, 0):
            record.msg = f"{record.msg} ({left_out_here} equal lines before this one were left out)"
        return count <= EQUAL_LINES_MAX


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
