"""Lines of the log: what clients send goes into many of them, so each has a length and is one line, whatever is in it,
and there are so many in a time."""

import logging
import re
from typing import Any

from ottla.net.quiet import LineLimit

__all__ = ["LINE_CHARACTERS_MAX", "TRACEBACK_CHARACTERS_MAX", "BoundedFormatter", "limit_lines"]

LINE_CHARACTERS_MAX = 2_000
TRACEBACK_CHARACTERS_MAX = 20_000  # behind the line
LINES_MAX = 500  # in a window of LineLimit: a thousand groups that come together tell of it in two
# Loggers of lines that clients or strangers cause, beside the loop's for what nobody caught. ottla.net has a limit of
# its own.
REACHED_BY_CLIENTS = ("api", "produce", "group", "txn", "share", "coordination", "quorum", "replica")
# What would begin a line of its own, move the cursor, or turn the direction of what stands beside it.
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
UNSAFE_IN_TRACEBACKS = re.compile(rf"(?!\n){UNSAFE.pattern}")


class BoundedFormatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        return UNSAFE.sub(_escaped, _cut(super().formatMessage(record), LINE_CHARACTERS_MAX))

    def formatException(self, ei: Any) -> str:
        return UNSAFE_IN_TRACEBACKS.sub(_escaped, _cut(super().formatException(ei), TRACEBACK_CHARACTERS_MAX))


def limit_lines() -> None:
    for name in ("asyncio", *(f"ottla.{name}" for name in REACHED_BY_CLIENTS)):
        logging.getLogger(name).addFilter(LineLimit(lines_max=LINES_MAX))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def _cut(text: str, characters_max: int) -> str:
    left_out = len(text) - characters_max
    return text if left_out <= 0 else f"{text[:characters_max]}… {left_out} more characters"
