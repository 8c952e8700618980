"""Answers that come later: delivered once, and gone when they are."""

import gc
import weakref
from collections.abc import Callable

import pytest
from ottla.api.call import Answer, Deferred


class Later(Deferred):
    def __init__(self) -> None:
        super().__init__()
        self.delivered: list[str] = []
        self.closed = self.began = 0

    def begin_waiting(self) -> None:
        self.began += 1

    def make(self) -> Answer:
        return [b"answer"]

    def close(self) -> None:
        self.closed += 1


def awaited() -> Later:
    """Delivered to somebody who holds on to it, as a connection does."""
    later = Later()
    later.start(lambda: later.delivered.append("delivered"))
    return later


def test_it_is_delivered_once() -> None:
    later = awaited()
    later.finish()
    later.finish()
    assert later.delivered == ["delivered"]
    assert later.closed == 1


def test_one_that_was_made_before_anybody_waited_is_delivered_at_once() -> None:
    later = Later()
    later.finish()
    later.start(lambda: later.delivered.append("delivered"))
    assert later.delivered == ["delivered"]


def test_it_begins_to_wait_when_it_is_started() -> None:
    later = Later()
    assert later.began == 0
    later.start(lambda: None)
    assert later.began == 1


def test_one_that_was_made_before_does_not_begin_to_wait() -> None:
    later = Later()
    later.finish()
    later.start(lambda: None)
    assert later.began == 0


def test_one_that_nobody_wants_is_not_delivered() -> None:
    later = awaited()
    later.cancel()
    later.finish()
    assert later.delivered == []


@pytest.mark.parametrize("end", [Later.finish, Later.cancel], ids=["delivered", "cancelled"])
def test_it_needs_no_collector(end: Callable[[Later], None]) -> None:
    """At ten thousand answers a second the collector would stop the broker for tens of milliseconds."""
    gc.collect()
    gc.disable()
    try:
        later = awaited()
        end(later)
        gone = weakref.ref(later)
        del later
        assert gone() is None
    finally:
        gc.enable()
