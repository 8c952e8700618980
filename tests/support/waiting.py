"""Waiting for a condition with a deadline, never for a fixed time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.1


def eventually(read: Callable[[], T], is_right: Callable[[T], bool], *, timeout_s: float = 30.0) -> T:
    """The first reading that is right; AssertionError with the last one otherwise."""
    deadline = time.monotonic() + timeout_s
    while True:
        seen = read()
        if is_right(seen):
            return seen
        if time.monotonic() > deadline:
            raise AssertionError(f"still not so after {timeout_s} s; last seen: {seen!r}")
        time.sleep(POLL_S)
