"""Frames of clients that are not logged in: how large they may be, and what all that are under way may hold.

Nothing is reserved for what a stranger's frame claims: only bytes that came count, apart from the memory for requests
of those who are known.
"""

from typing import Protocol

from ottla.security.authentication import Authentication
from ottla.wire.frames import FrameLimits
from ottla.wire.reader import Malformed

__all__ = ["Stranger", "StrangerMemory", "login_limits"]

HEADED_BYTES_MAX = 8 * 1024  # of a request that brings no credentials
SASL_AUTHENTICATE = 36
STRANGERS_BYTES_MAX = 8 << 20
COUNTED_BYTES_MIN = 16 * 1024  # less is not worth counting: logins have a few hundred bytes


def login_limits(authentication: Authentication) -> FrameLimits:
    """Before the login, below sasl.server.max.receive.size."""

    def check(key: int, size: int) -> None:
        if key != SASL_AUTHENTICATE and not authentication.is_raw:
            raise Malformed(f"API {key} has {size} bytes before the login, allowed are {HEADED_BYTES_MAX}")

    return FrameLimits(HEADED_BYTES_MAX, check)


class Stranger(Protocol):
    def close(self, reason: str) -> None: ...


class StrangerMemory:
    """Invariant: what is held <= limit, but for one alone."""

    def __init__(self, limit_bytes: int = STRANGERS_BYTES_MAX) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[Stranger, int] = {}
        self.held_bytes = 0

    def hold(self, stranger: Stranger, size: int) -> None:
        """So much of its frame is here. Who holds most has to go when there is too much: a login has no need of it."""
        if size < COUNTED_BYTES_MIN:
            self.leave(stranger)
            return
        self.held_bytes += size - self._held.get(stranger, 0)
        self._held[stranger] = size
        while self.held_bytes > self._limit_bytes and len(self._held) > 1:
            largest = max(self._held, key=self._held.__getitem__)
            self.leave(largest)
            largest.close("too much is under way of clients that are not logged in")

    def leave(self, stranger: Stranger) -> None:
        self.held_bytes -= self._held.pop(stranger, 0)
