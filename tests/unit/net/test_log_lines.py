"""One line of the log is one line, and never as long as what a client sent."""

import logging

import pytest
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


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("g\n2026-11-19 ERROR ottla: forged", "g\\n2026-11-19 ERROR ottla: forged"),
        ("a\r\tb\x1b[2Jc\x7f\x85", "a\\r\\tb\\x1b[2Jc\\x7f\\x85"),
        ("a\u2028b\u2029c\u202ed\u200fe\u2066f\u061cg", "a\\u2028b\\u2029c\\u202ed\\u200fe\\u2066f\\u061cg"),
        ("größe 東京 €", "größe 東京 €"),
    ],
)
def test_a_line_stays_one_and_shows_what_is_in_it(sent: str, seen: str) -> None:
    assert line(sent) == f"ottla.net: {seen}"


def test_tracebacks_keep_their_lines_and_nothing_else() -> None:
    try:
        raise ValueError("x\x1b[2J\u202e")
    except ValueError as error:
        said = line("failed", error)
    assert said.startswith("ottla.net: failed\nTraceback")
    assert said.endswith("\nValueError: x\\x1b[2J\\u202e")


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
