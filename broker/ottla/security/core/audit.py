"""What is written down for those who have to know who did what. Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

import msgspec

from ottla.security.core.principals import ANONYMOUS, Principal

__all__ = ["TEXT_CHARACTERS_MAX", "AuditEvent", "AuditTrail", "NoTrail", "Verdict", "resource_lines"]

TEXT_CHARACTERS_MAX = 500
"""A longer text of a line is cut."""

Verdict = Literal["allowed", "denied", "failed", "unknown"]
"""`allowed`: something was changed. `unknown`: nobody waited until it was known."""


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One line. Never a secret; texts that clients choose are cut by whoever writes it."""

    principal: Principal
    host: str
    listener: str
    action: str
    """An API's name, `login`, or a gRPC method."""
    resource: str = ""
    """Such as `Topic:orders`."""
    verdict: Verdict
    reason: str = ""
    is_claimed: bool = False
    """The principal is whom somebody claimed to be who was not let in."""

    @property
    def is_of_stranger(self) -> bool:
        """Anybody who reaches a port can make such events, as many as they like."""
        return self.verdict != "allowed" and (self.is_claimed or self.principal == ANONYMOUS)


class AuditTrail(Protocol):
    def record(self, event: AuditEvent) -> None:
        """Returns at once; when there is too much to write, lines are dropped and counted."""


class NoTrail:
    def record(self, event: AuditEvent) -> None:
        pass


def resource_lines(names: Iterable[str], lines_max: int | None = None) -> Iterator[str]:
    """The names that a change means, once each, in as many lines as they need: what is cut off would be hidden. With
    `lines_max`, for names of which nothing was changed, the last one may be a count."""
    different = list(dict.fromkeys(names))
    line, lines = "", 0
    for number, name in enumerate(different):
        for piece in _pieces(name):
            longer = f"{line}, {piece}" if line else piece
            if len(longer) <= TEXT_CHARACTERS_MAX:
                line = longer
                continue
            yield line
            line, lines = piece, lines + 1
            if lines_max is not None and lines + 1 >= lines_max:
                yield f"… and {len(different) - number} more of the same request"
                return
    if line:
        yield line


def _pieces(name: str) -> Iterator[str]:
    yield name[:TEXT_CHARACTERS_MAX]
    size = TEXT_CHARACTERS_MAX - 1
    for start in range(TEXT_CHARACTERS_MAX, len(name), size):
        yield "…" + name[start : start + size]
