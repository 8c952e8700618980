import logging

from ottla.net import quiet
from ottla.net.quiet import EQUAL_LINES_MAX, LINES_MAX, WINDOW_SECONDS, LineLimit


def test_lines_beyond_the_limit_are_counted_and_left_out(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(quiet.time, "monotonic", lambda: now[0])
    limit = LineLimit()

    def passes(number: int) -> str | None:
        record = logging.LogRecord("ottla.net", logging.WARNING, "", 0, "closed: %s", (number,), None)
        return record.getMessage() if limit.filter(record) else None

    expected = [f"closed: {number}" for number in range(LINES_MAX)]
    assert [passes(number) for number in range(LINES_MAX + 5)] == expected + [None] * 5
    now[0] += WINDOW_SECONDS
    assert passes(-1) == "closed: -1 (5 lines before this one were left out)"
    assert passes(-2) == "closed: -2"


def test_equal_lines_are_few(monkeypatch):
    """A TLS client at a plaintext port tries once a second for ever."""
    now = [100.0]
    monkeypatch.setattr(quiet.time, "monotonic", lambda: now[0])
    limit = LineLimit()

    def passes() -> str | None:
        now[0] += 1.0
        record = logging.LogRecord("ottla.net", logging.WARNING, "", 0, "closed: %s", ("TLS",), None)
        return record.getMessage() if limit.filter(record) else None

    assert [passes() for _ in range(60)] == ["closed: TLS"] * EQUAL_LINES_MAX + [None] * 55
    assert [passes(), passes()] == ["closed: TLS (55 equal lines before this one were left out)", "closed: TLS"]


def test_what_failed_is_not_hidden_behind_nonsense() -> None:
    limit = LineLimit()
    nonsense = [
        logging.LogRecord("ottla.net", logging.WARNING, "", 0, "nonsense %d", (number,), None)
        for number in range(LINES_MAX + 1)
    ]
    failure = logging.LogRecord("ottla.net", logging.ERROR, "", 0, "failed", None, None)
    assert [limit.filter(one) for one in nonsense][-2:] == [True, False]
    assert [limit.filter(failure) for _ in range(LINES_MAX + 1)][-2:] == [True, False]
