"""One client's way through SASL: which phase it is in, its exchange, until when its login holds.

`api/k17` and `api/k36` (or, without request headers, the connection itself) bring what the client sends; the phases are
in `core/authentication.py`. A refusal is answered late and then the connection ends, so that guessing takes time.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ottla.ports import Clock
from ottla.security.core.audit import AuditEvent, AuditTrail, NoTrail
from ottla.security.core.authentication import Phase, Sent, next_phase, refusal_of_change, session_lifetime_ms
from ottla.security.core.logins import Exchange, Login, LoginRefused, Mechanism, Step
from ottla.security.core.principals import ANONYMOUS, Principal

__all__ = ["Authentication", "AuthenticationCounts", "LoginRules", "OutOfOrder"]

SHOWN_CHARACTERS_MAX = 64


class OutOfOrder(Exception):
    """What the client sent is not allowed now; the connection is to be closed. The text is for the log."""


@dataclass(slots=True)
class AuthenticationCounts:
    """Of one listener, since the start: logins, and handshakes of TLS where nobody logs in."""

    succeeded: int = 0
    failed: int = 0
    renewed: int = 0
    renewals_failed: int = 0
    expired: int = 0
    """Connections closed because their login was not renewed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRules:
    """Of one listener."""

    listener: str
    protocol: str = "SASL_SSL"
    mechanisms: Mapping[str, Mechanism]
    reauth_ms_max: Mapping[str, int]
    """connections.max.reauth.ms by mechanism."""
    delay_s: Callable[[], float]
    """connection.failed.authentication.delay.ms."""
    timeout_s: float
    """For the whole login."""
    receive_bytes_max: int
    audit: AuditTrail = field(default_factory=NoTrail)
    counts: AuthenticationCounts


class Authentication:
    """`identify` is called with every login. `is_passed`: nothing has to be asked of this client any more."""

    __slots__ = ("_claimed", "_clock", "_exchange", "_expires_at", "_host", "_identify", "_login", "_mechanism",
                 "_phase", "_rules", "begun_at", "failure", "is_passed")  # fmt: skip

    def __init__(self, rules: LoginRules, *, host: str, clock: Clock, identify: Callable[[Login], None]) -> None:
        self._rules = rules
        self._host = host
        self._clock = clock
        self._identify = identify
        self._phase = Phase.HELLO
        self._mechanism: Mechanism | None = None
        self._exchange: Exchange | None = None
        self._login: Login | None = None
        self._claimed: Principal | None = None
        self._expires_at: float | None = None
        self.begun_at = clock.monotonic()
        self.is_passed = False
        self.failure: str | None = None
        """Why the connection has to end, once its answers are sent."""

    @property
    def complaint(self) -> str | None:
        """`failure` in a sentence for the log: of whom, and by which mechanism. The name is a claim; whoever has logged
        in before is named first."""
        if self.failure is None:
            return None
        whom = f" of {_shown(self._claimed)}" if self._claimed else ""
        if self._login is not None:
            whom = f" anew of {_shown(self._login.principal)}{f' as{whom[3:]}' if whom else ''}"
        how = f" by {self._mechanism.name}" if self._mechanism else ""
        return f"login{whom}{how} failed: {self.failure}"

    @property
    def is_raw(self) -> bool:
        """The next frame is a message of the mechanism, not a request."""
        return self._phase is Phase.RAW

    @property
    def is_under_way(self) -> bool:
        """A handshake was answered, and the login is not complete."""
        return self._exchange is not None

    @property
    def has_logged_in(self) -> bool:
        return self._login is not None

    @property
    def mechanisms(self) -> list[str]:
        return list(self._rules.mechanisms)

    def close(self) -> None:
        """The connection is lost: it refers to this, and must not be referred to any longer."""
        self._identify = _nobody

    def is_late(self, now: float) -> bool:
        return self._login is None and now - self.begun_at > self._rules.timeout_s

    def admit(self, sent: Sent, name: str) -> None:
        """Called before a request is handled. Raises OutOfOrder."""
        if self.failure is not None:
            raise OutOfOrder("a request after a login that failed")
        if next_phase(self._phase, sent) is None:
            self.failure = self._out_of_order(sent, name)
            self._refused(self.failure)
            raise OutOfOrder(self.failure)
        if self._phase is Phase.IN and sent is not Sent.HANDSHAKE and self._is_expired():
            self._rules.counts.expired += 1
            raise OutOfOrder("its login has expired and was not renewed")

    def _out_of_order(self, sent: Sent, name: str) -> str:
        if sent is Sent.OTHER and self._phase in (Phase.HELLO, Phase.HANDSHAKE):
            return f"the client did not log in; it needs security.protocol={self._rules.protocol}"
        return f"unexpected {name} {self._phase.value}"

    def greeted(self) -> None:
        """ApiVersions was answered without an error."""
        self._phase = next_phase(self._phase, Sent.VERSIONS) or self._phase

    def may_begin(self, version: int) -> bool:
        """Whether a handshake in this version can be answered now."""
        return next_phase(self._phase, Sent.HANDSHAKE if version else Sent.HANDSHAKE_0) is not None

    async def handshake(self, mechanism: str, version: int) -> bool:
        """Whether the mechanism is there; if not, it takes its time."""
        known = self._rules.mechanisms.get(mechanism)
        if known is None:
            await self._refuse_late(f"unknown mechanism {mechanism[:64]!r}, enabled are {', '.join(self.mechanisms)}")
            return False
        following = next_phase(self._phase, Sent.HANDSHAKE if version else Sent.HANDSHAKE_0)
        assert following is not None, "admitted"
        self._phase = following
        self.is_passed = False
        if self._login is None or self._mechanism is known:
            self._exchange = known.begin(self._host)
            self._mechanism = known
        else:
            self._exchange = _OtherMechanism(mechanism, self._mechanism.name if self._mechanism else "")
        return True

    async def step(self, data: bytes) -> tuple[bytes, int]:
        """The next challenge, and once it is the last one for how many ms the login holds (0: for ever). Raises
        LoginRefused, late."""
        assert self._exchange is not None
        try:
            async with asyncio.timeout(self._rules.timeout_s):
                step = await self._exchange.step(data)
            return step.challenge, self._logged_in(step) if step.login is not None else 0
        except LoginRefused as refusal:
            await self._refuse_late(refusal.reason, refusal.principal)
            raise
        except TimeoutError:
            await self._refuse_late("it took too long (ottla.authentication.timeout.ms)")
            raise LoginRefused("Authentication failed: it took too long") from None

    def _logged_in(self, step: Step) -> int:
        login = step.login
        assert login is not None and self._mechanism is not None
        renewed = self._login is not None
        if self._login is not None and (problem := refusal_of_change(self._login.principal, login.principal)):
            raise LoginRefused(problem, principal=login.principal)
        lifetime_ms = session_lifetime_ms(
            now_ms=self._clock.wall_ms(),
            expires_at_ms=login.expires_at_ms,
            reauth_ms_max=self._rules.reauth_ms_max.get(self._mechanism.name, 0),
        )
        self._expires_at = None if lifetime_ms is None else self._clock.monotonic() + lifetime_ms / 1000
        self._login, self._exchange = login, None
        self._phase = next_phase(self._phase, Sent.LAST) or self._phase
        self.is_passed = lifetime_ms is None
        self._rules.counts.renewed += renewed
        self._rules.counts.succeeded += not renewed
        self._identify(login)
        return lifetime_ms or 0

    def _is_expired(self) -> bool:
        return self._expires_at is not None and self._clock.monotonic() > self._expires_at

    def spoiled(self, reason: str) -> None:
        """What came is no request at all."""
        if self.failure is None and self._login is None:
            self.failure = reason
            self._refused(reason)

    async def _refuse_late(self, reason: str, principal: Principal | None = None) -> None:
        self.failure = reason
        self._claimed = principal
        self._refused(reason, principal)
        await asyncio.sleep(self._rules.delay_s())

    def _refused(self, reason: str, principal: Principal | None = None) -> None:
        """Who has logged in before has proved a name: that one answers for it. Another is told as a claim only."""
        proven = self._login.principal if self._login is not None else None
        if proven is None:
            self._rules.counts.failed += 1
        else:
            self._rules.counts.renewals_failed += 1
            if principal is not None and principal != proven:
                reason = f"{reason} (it claimed to be {_shown(principal)})"
        event = AuditEvent(
            principal=proven or principal or ANONYMOUS, host=self._host,
            listener=self._rules.listener, action="login", verdict="failed", reason=reason,
            is_claimed=proven is None,
        )  # fmt: skip
        self._rules.audit.record(event)


def _shown(principal: Principal) -> str:
    return str(principal)[:SHOWN_CHARACTERS_MAX]


def _nobody(login: Login) -> None:
    pass


class _OtherMechanism:
    """As in Kafka, a renewed login that changes the mechanism fails with its first message."""

    def __init__(self, wanted: str, before: str) -> None:
        self._sentence = (
            f"SASL mechanism '{wanted}' requested by client is not supported for re-authentication of mechanism "
            f"'{before}'"
        )

    async def step(self, data: bytes) -> Step:
        raise LoginRefused(self._sentence)
