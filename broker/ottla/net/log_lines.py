"""Lines of the log: what clients send goes into many of them, so each has a length, and there are so many in a time."""

import logging
from typing import Any

from ottla.net.quiet import LineLimit

__all__ = ["LINE_CHARACTERS_MAX", "TRACEBACK_CHARACTERS_MAX", "BoundedFormatter", "limit_lines"]

LINE_CHARACTERS_MAX = 2_000
TRACEBACK_CHARACTERS_MAX = 20_000  # behind the line
LINES_MAX = 500  # in a window of LineLimit: a thousand groups that come together tell of it in two
# Loggers of lines that clients or strangers cause, beside the loop's for what nobody caught. ottla.net has a limit of
# its own.
REACHED_BY_CLIENTS = ("api", "produce", "group", "txn", "share", "coordination", "quorum", "replica")


class BoundedFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        return _cut(super().formatMessage(record), LINE_CHARACTERS_MAX)

    def formatException(self, ei: Any) -> str:
        return _cut(super().formatException(ei), TRACEBACK_CHARACTERS_MAX)


def limit_lines() -> None:
    for name in ("asyncio", *(f"ottla.{name}" for name in REACHED_BY_CLIENTS)):
        logging.getLogger(name).addFilter(LineLimit(lines_max=LINES_MAX))


def _cut(text: str, characters_max: int) -> str:
    left_out = len(text) - characters_max
    return text if left_out <= 0 else f"{text[:characters_max]}… {left_out} more characters"
