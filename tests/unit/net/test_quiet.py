import logging

from ottla.net import quiet
from ottla.net.quiet import LINES_MAX, WINDOW_SECONDS, LineLimit


def test_lines_beyond_the_limit_are_counted_and_left_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(quiet.time, "monotonic", lambda: now[0])
    limit = LineLimit()

    def passes() -> str | None:
        record = logging.LogRecord("ottla.net", logging.WARNING, "", 0, "closed: %s", ("x",), None)
        return record.getMessage() if limit.filter(record) else None

    assert [passes() for _ in range(LINES_MAX + 5)] == ["closed: x"] * LINES_MAX + [None] * 5
    now[0] += WINDOW_SECONDS
    assert passes() == "closed: x (5 lines before this one were left out)"
    assert passes() == "closed: x"


def test_what_failed_is_not_hidden_behind_nonsense() -> None:
    limit = LineLimit()
    nonsense = logging.LogRecord("ottla.net", logging.WARNING, "", 0, "nonsense", None, None)
    failure = logging.LogRecord("ottla.net", logging.ERROR, "", 0, "failed", None, None)
    assert [limit.filter(nonsense) for _ in range(LINES_MAX + 1)][-2:] == [True, False]
    assert [limit.filter(failure) for _ in range(LINES_MAX + 1)][-2:] == [True, False]
