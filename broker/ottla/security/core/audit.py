"""What is written down for those who have to know who did what. Pure."""

from typing import Literal, Protocol

import msgspec

from ottla.security.core.principals import Principal

__all__ = ["AuditEvent", "AuditTrail", "NoTrail"]

Verdict = Literal["allowed", "denied", "failed"]


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


class AuditTrail(Protocol):
    def record(self, event: AuditEvent) -> None:
        """Returns at once; when there is too much to write, lines are dropped and counted."""


class NoTrail:
    def record(self, event: AuditEvent) -> None:
        pass
