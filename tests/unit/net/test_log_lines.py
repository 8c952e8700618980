"""One line of the log is never as long as what a client sent."""

import logging

from ottla.net.log_lines import LINE_CHARACTERS_MAX, TRACEBACK_CHARACTERS_MAX, BoundedFormatter, limit_lines
from ottla.net.quiet import LineLimit


def line(message: str, error: BaseException | None = None) -> str:
    info = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("ottla.net", logging.INFO, "file", 1, "%s", (message,), info)
    return BoundedFormatter("%(name)s: %(message)s").format(record)


def test_a_line_is_cut_and_says_so() -> None:
    assert line("short") == "ottla.net: short"
    cut = line("x" * 1_000_000)
    assert len(cut) < LINE_CHARACTERS_MAX + 100
    assert cut.endswith(f"… {1_000_000 + len('ottla.net: ') - LINE_CHARACTERS_MAX} more characters")


def test_tracebacks_stand_whole_behind_their_line_within_a_bound() -> None:
    try:
        raise ValueError("y" * 5_000)
    except ValueError as error:
        assert "y" * 5_000 in line("failed", error)
    try:
        raise ValueError("y" * 5_000_000)
    except ValueError as error:
        assert len(line("failed", error)) < TRACEBACK_CHARACTERS_MAX + 200


def test_what_nobody_caught_is_limited_too() -> None:
    logger = logging.getLogger("asyncio")
    before = list(logger.filters)
    limit_lines()
    try:
        assert any(isinstance(each, LineLimit) for each in logger.filters)
    finally:
        logger.filters[:] = before
