"""Regular expressions that clients send, by RE2: linear in the text, and of bounded size. Pure.

RE2 has no limit of steps, so the size of a program is what bounds the time of one match: with PROGRAM_BYTES_MAX, a
name of 249 characters took at most 9 ms over thousands of expressions that were made to be slow. Differences to re2j,
which Kafka has: expressions that are longer than EXPRESSION_BYTES_MAX or become too large a program are refused, and
two groups may have the same name.
"""

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["BadRegex", "Matches", "Regex", "compiled", "match_for_a_while"]

EXPRESSION_BYTES_MAX = 4096  # compiled within 12 ms, however it is made
PROGRAM_BYTES_MAX = 256 * 1024
SHOWN_CHARACTERS_MAX = 100


class BadRegex(ValueError):
    """Says what is wrong with an expression."""


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
    """BadRegex says what is wrong. The library keeps the last 128: no more than 32 MiB."""
    return Regex(text)


def shown(text: str) -> str:
    """As much of an expression as fits a message."""
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}…"


def _reason(error: Exception) -> str:
    reason = error.args[0]
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


class Matches(NamedTuple):
    """What was found among the names from `begin` to `end`, and the CPU seconds that took."""

    names: list[str]
    begin: int
    end: int
    cpu_s: float


def match_for_a_while(
    regex: Regex, names: list[str], begin: int, *, cpu: Callable[[], float], cpu_s_max: float
) -> Matches:
    """Names from `begin` on, until all are matched or the time is up; at least one. `cpu` counts seconds."""
    started, found, at = cpu(), [], begin
    spent_s = 0.0
    while at < len(names) and spent_s < cpu_s_max:
        if regex.matches(names[at]):
            found.append(names[at])
        at += 1
        spent_s = cpu() - started
    return Matches(found, begin, at, spent_s)
