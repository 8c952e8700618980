"""Regular expressions of clients, by RE2: linear time, and programs of bounded size. Pure.

RE2 does not limit steps, so the size of the program bounds the time of one match: with PROGRAM_BYTES_MAX, a name of 249
characters took at most 9 ms over thousands of adversarial expressions. Differences to re2j, which Kafka uses:
expressions longer than EXPRESSION_BYTES_MAX and programs that become too large are refused, and two groups may have the
same name.
"""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["BadRegex", "Matches", "Regex", "compiled", "match_until"]

EXPRESSION_BYTES_MAX = 4096  # compiles within 12 ms at worst
PROGRAM_BYTES_MAX = 256 * 1024
SHOWN_CHARACTERS_MAX = 100


class BadRegex(ValueError):
    """The message says what is wrong with the expression."""


class Regex:
    def __init__(self, text: str) -> None:
        if len(text.encode()) > EXPRESSION_BYTES_MAX:
            raise BadRegex(f"it is longer than {EXPRESSION_BYTES_MAX} bytes; name the topics one by one instead")
        import re2  # only here: 5 MB that most brokers never need

        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = PROGRAM_BYTES_MAX
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise BadRegex(_reason(error)) from None

    def matches(self, name: str) -> bool:
        """Whether the whole name matches."""
        return self._compiled.fullmatch(name) is not None


def compiled(text: str) -> Regex:
    """Raises BadRegex. The last 128 are cached: at most 32 MiB."""
    return Regex(text)


def shown(text: str) -> str:
    """The expression, shortened for a message."""
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"


def _reason(error: Exception) -> str:
    reason = error.args[0]
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


class Matches(NamedTuple):
    """The matches among the names from `begin` to `end`, and the CPU seconds used."""

    names: list[str]
    begin: int
    end: int
    cpu_s: float


def match_until(regex: Regex, names: list[str], begin: int, *, cpu: Callable[[], float], cpu_s_max: float) -> Matches:
    """Match names from `begin` on until all are done or the time is up, at least one. `cpu` returns CPU seconds."""
    started, found, at = cpu(), [], begin
    spent_s = 0.0
    while at < len(names) and spent_s < cpu_s_max:
        if regex.matches(names[at]):
            found.append(names[at])
        at += 1
        spent_s = cpu() - started
    return Matches(found, begin, at, spent_s)
