"""TLS handshakes that are under way at a listener: bounded in number and time, and those that fail are told."""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import Protocol

from ottla.net.listener_security import ListenerSecurity
from ottla.net.quiet import LineLimit
from ottla.ports import Clock
from ottla.security.core.audit import AuditEvent, AuditTrail
from ottla.security.core.principals import ANONYMOUS

__all__ = ["HANDSHAKES_MAX", "Handshakes"]

log = logging.getLogger("ottla.net.tls")
log.addFilter(LineLimit())

HANDSHAKES_MAX = 1_000  # under way; beyond them the oldest have to hurry
HURRY_SECONDS = 2.0
TURN_SECONDS_MAX = 0.004  # of all of them in one turn of the loop
SHORTEST_SECONDS = 1e-6
HTTP = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI", b"PRI ")
REASONS = {
    "NO_SHARED_CIPHER": "it offers none of the cipher suites that are allowed here (ssl.cipher.suites)",
    "UNSUPPORTED_PROTOCOL": "its TLS versions are not allowed here (ssl.enabled.protocols)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate, which ssl.client.auth=required asks for",
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the CA of the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it finds the broker's certificate expired",
}


class Handshake(Protocol):
    host: str

    def give_up(self) -> None: ...


class Handshakes:
    """Of one listener."""

    def __init__(self, listener: str, security: ListenerSecurity, *, audit: AuditTrail, clock: Clock) -> None:
        self._listener = listener
        self._security = security
        self._audit = audit
        self._clock = clock
        self._queue: deque[Callable[[], None]] = deque()
        self._spent_s = 0.0  # in this turn of the loop
        self._under_way: dict[Handshake, tuple[float, asyncio.TimerHandle]] = {}

    @property
    def room(self) -> int:
        """For more of them. Where there is none, those that take long make it."""
        if len(self._under_way) >= HANDSHAKES_MAX:
            late = self._clock.monotonic() - HURRY_SECONDS
            for handshake in [each for each, (since, _) in self._under_way.items() if since < late]:
                self._too_late(handshake)
        return HANDSHAKES_MAX - len(self._under_way)

    def in_turn(self, go_on: Callable[[], None]) -> None:
        """Now, or when others had their turn: signatures take milliseconds, and clients come in crowds."""
        if self._spent_s < TURN_SECONDS_MAX and not self._queue:
            self._go_on(go_on)
        else:
            self._queue.append(go_on)

    def _go_on(self, go_on: Callable[[], None]) -> None:
        began_s = self._clock.monotonic()
        if not self._spent_s:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        go_on()
        self._spent_s += max(self._clock.monotonic() - began_s, SHORTEST_SECONDS)

    def _begin_turn(self) -> None:
        self._spent_s = 0.0
        while self._queue and self._spent_s < TURN_SECONDS_MAX:
            self._go_on(self._queue.popleft())

    def begun(self, handshake: Handshake) -> None:
        timer = asyncio.get_running_loop().call_later(self._security.timeout_s, self._too_late, handshake)
        self._under_way[handshake] = (self._clock.monotonic(), timer)

    def check(self, tls: ssl.SSLObject) -> None:
        """A resumed session brings its certificate along, which OpenSSL does not look at again. Raises ValueError."""
        certificate = tls.getpeercert() if tls.session_reused else None
        if certificate and ssl.cert_time_to_seconds(str(certificate["notAfter"])) * 1000 < self._clock.wall_ms():
            raise ValueError("its certificate has expired")

    def done(self, handshake: Handshake) -> None:
        self._forget(handshake)
        self._security.counts.succeeded += self._security.login is None

    def lost(self, handshake: Handshake, *, begun: bool) -> None:
        """The client went away; one that sent nothing only looked whether there is somebody."""
        if self._forget(handshake) and begun:
            self._tell(handshake, "it went away in the middle")

    def failed(self, handshake: Handshake, error: Exception, *, first: bytes) -> None:
        """`first` is how its bytes begin."""
        self._forget(handshake)
        self._tell(handshake, _reason(error, first))

    def close(self) -> None:
        for handshake in list(self._under_way):
            self._forget(handshake)
            handshake.give_up()

    def _too_late(self, handshake: Handshake) -> None:
        self._forget(handshake)
        self._tell(handshake, "it takes too long (ottla.authentication.timeout.ms)")
        handshake.give_up()

    def _forget(self, handshake: Handshake) -> bool:
        under_way = self._under_way.pop(handshake, None)
        if under_way is not None:
            under_way[1].cancel()
        return under_way is not None

    def _tell(self, handshake: Handshake, reason: str) -> None:
        self._security.counts.failed += 1
        log.warning("TLS handshake with %s on %s failed: %s", handshake.host, self._listener, reason)
        event = AuditEvent(
            principal=ANONYMOUS, host=handshake.host, listener=self._listener, action="TLS handshake",
            verdict="failed", reason=reason,
        )  # fmt: skip
        self._audit.record(event)


def _reason(error: Exception, first: bytes) -> str:
    if first[:1] != b"\x16":
        if first.startswith(HTTP):
            return "it speaks HTTP without TLS"
        if len(first) == 8 and first[:2] == b"\0\0":
            return "it speaks Kafka's protocol without TLS (security.protocol=SSL or SASL_SSL is needed here)"
        return "its bytes are no TLS"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    name = getattr(error, "reason", None) or str(error)
    return REASONS.get(name, name.replace("_", " ").lower())
