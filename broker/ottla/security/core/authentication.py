"""What a client of a SASL listener may send when. Pure.

    HELLO ─versions─► HANDSHAKE ─handshake─► LOGIN ─logged in─► IN ─handshake─► AGAIN ─logged in─► IN
      └──────────────── handshake ────────────┘      (v0 of the handshake: RAW in LOGIN's place)

What is not in the table ends the connection, and so does a failure.
"""

from enum import Enum

from ottla.security.core.principals import Principal

__all__ = ["Phase", "Sent", "next_phase", "refusal_of_change", "session_lifetime_ms"]


class Phase(Enum):
    HELLO = "before the handshake"
    HANDSHAKE = "after ApiVersions, before the handshake"
    LOGIN = "during the login"
    RAW = "during the login without request headers"
    IN = "logged in"
    AGAIN = "during a renewed login"


class Sent(Enum):
    VERSIONS = "ApiVersions"
    HANDSHAKE_0 = "SaslHandshake v0"
    HANDSHAKE = "SaslHandshake"
    AUTHENTICATE = "SaslAuthenticate"
    OTHER = "another request"
    LAST = "what completes the login"
    """Not sent as such: an exchange found that its client has proved who it is."""


NEXT = {
    (Phase.HELLO, Sent.VERSIONS): Phase.HANDSHAKE,
    (Phase.HELLO, Sent.HANDSHAKE_0): Phase.RAW,
    (Phase.HELLO, Sent.HANDSHAKE): Phase.LOGIN,
    (Phase.HANDSHAKE, Sent.HANDSHAKE_0): Phase.RAW,
    (Phase.HANDSHAKE, Sent.HANDSHAKE): Phase.LOGIN,
    (Phase.LOGIN, Sent.AUTHENTICATE): Phase.LOGIN,
    (Phase.LOGIN, Sent.LAST): Phase.IN,
    (Phase.RAW, Sent.LAST): Phase.IN,
    (Phase.IN, Sent.VERSIONS): Phase.IN,
    (Phase.IN, Sent.HANDSHAKE): Phase.AGAIN,
    (Phase.IN, Sent.AUTHENTICATE): Phase.IN,
    (Phase.IN, Sent.OTHER): Phase.IN,
    (Phase.AGAIN, Sent.AUTHENTICATE): Phase.AGAIN,
    (Phase.AGAIN, Sent.LAST): Phase.IN,
}


def next_phase(phase: Phase, sent: Sent) -> Phase | None:
    """None: the connection ends."""
    return NEXT.get((phase, sent))


def session_lifetime_ms(*, now_ms: int, expires_at_ms: int | None, reauth_ms_max: int) -> int | None:
    """How long a login holds: until its credential expires, or it has to be renewed (connections.max.reauth.ms).
    None: as long as the connection."""
    left_ms = [] if expires_at_ms is None else [expires_at_ms - now_ms]
    if reauth_ms_max > 0:
        left_ms.append(reauth_ms_max)
    return max(min(left_ms), 0) if left_ms else None


def refusal_of_change(before: Principal, after: Principal) -> str | None:
    """A renewed login is that of the same principal."""
    if before == after:
        return None
    return (
        f"Cannot change principals during re-authentication from {before.kind}.{before.name}: {after.kind}.{after.name}"
    )
