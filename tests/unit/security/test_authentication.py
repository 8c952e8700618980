"""One client through SASL, by a clock that the test moves: what it may send when, and until when it is believed."""

import asyncio
from collections.abc import Sequence

import pytest
from ottla.security.authentication import Authentication, AuthenticationCounts, LoginRules, OutOfOrder
from ottla.security.core.audit import AuditEvent
from ottla.security.core.authentication import Phase, Sent, next_phase, session_lifetime_ms
from ottla.security.core.logins import Login, LoginRefused, Step
from ottla.security.core.principals import USER, Principal

ALICE = Principal(USER, "alice")


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall_ms(self) -> int:
        return round(self.now * 1000)


class Spells:
    """A mechanism of two messages: a challenge, then whatever name the client says."""

    name = "SPELLS"

    def __init__(self, expires_at_ms: int | None = None) -> None:
        self._expires_at_ms = expires_at_ms

    def begin(self, host: str) -> "Spells":
        return self

    async def step(self, data: bytes) -> Step:
        if not data:
            return Step(b"who?")
        if data == b"never":
            await asyncio.Event().wait()
        if data == b"eve":
            raise LoginRefused("no", reason="eve is eve", principal=Principal(USER, "eve"))
        return Step(b"welcome", Login(Principal(USER, data.decode()), self._expires_at_ms))


class Trail(list[AuditEvent]):
    def record(self, event: AuditEvent) -> None:
        self.append(event)


class Trial:
    def __init__(self, *, expires_at_ms: int | None = None, reauth_ms: int = 0, timeout_s: float = 5.0) -> None:
        self.clock, self.trail, self.counts = Clock(), Trail(), AuthenticationCounts()
        self.logins: list[Login] = []
        mechanisms = {"SPELLS": Spells(expires_at_ms), "OTHER": Spells()}
        self.rules = LoginRules(
            listener="IN", mechanisms=mechanisms, reauth_ms_max={"SPELLS": reauth_ms}, delay_s=lambda: 0.0,
            timeout_s=timeout_s, receive_bytes_max=1000, audit=self.trail, counts=self.counts,
        )  # fmt: skip
        self.it = Authentication(self.rules, host="h", clock=self.clock, identify=self.logins.append)

    async def handshake(self, mechanism: str = "SPELLS", version: int = 1) -> bool:
        self.it.admit(Sent.HANDSHAKE if version else Sent.HANDSHAKE_0, "handshake")
        return await self.it.handshake(mechanism, version)

    async def step(self, data: bytes) -> tuple[bytes, int]:
        if not self.it.is_raw:
            self.it.admit(Sent.AUTHENTICATE, "authenticate")
        return await self.it.step(data)

    async def log_in(self, name: bytes = b"alice") -> int:
        assert await self.handshake()
        assert await self.step(b"") == (b"who?", 0)
        return (await self.step(name))[1]


def test_nobody_gets_in_but_by_a_login() -> None:
    """Over all ways of six steps through the table."""
    assert all(phase in (Phase.IN, Phase.AGAIN) or sent is not Sent.OTHER for phase, sent in _allowed())
    reached = {(Phase.HELLO, False)}
    for _ in range(6):
        for phase, is_in in tuple(reached):
            for sent in Sent:
                following = next_phase(phase, sent)
                if following is not None:
                    reached.add((following, is_in or sent is Sent.LAST))
    assert {phase for phase, is_in in reached if not is_in}.isdisjoint({Phase.IN, Phase.AGAIN})


def _allowed() -> Sequence[tuple[Phase, Sent]]:
    return [(phase, sent) for phase in Phase for sent in Sent if next_phase(phase, sent) is not None]


def test_a_login() -> None:
    async def main() -> None:
        trial = Trial()
        trial.it.admit(Sent.VERSIONS, "versions")
        trial.it.greeted()
        assert not trial.it.is_passed
        assert await trial.log_in() == 0
        assert trial.it.is_passed and trial.it.has_logged_in and not trial.it.is_under_way
        assert trial.logins == [Login(ALICE)] and trial.counts.succeeded == 1 and not trial.trail

    asyncio.run(main())


NO_LOGIN = "the client did not log in; it needs security.protocol=SASL_SSL"


@pytest.mark.parametrize(
    ("sent", "reason"), [(Sent.OTHER, NO_LOGIN), (Sent.AUTHENTICATE, "unexpected x before the handshake")]
)
def test_out_of_order(sent: Sent, reason: str) -> None:
    trial = Trial()
    with pytest.raises(OutOfOrder, match=reason):
        trial.it.admit(sent, "x")
    trial.it.spoiled("bad request")  # as the connection says of whatever it cannot begin: this has been told
    assert [(event.verdict, event.reason) for event in trial.trail] == [("failed", reason)]
    assert trial.counts.failed == 1


def test_a_refusal_ends_it() -> None:
    async def main() -> None:
        trial = Trial()
        await trial.handshake()
        with pytest.raises(LoginRefused):
            await trial.step(b"eve")
        (event,) = trial.trail
        assert (str(event.principal), event.reason, trial.it.failure) == ("User:eve", "eve is eve", "eve is eve")
        assert trial.it.complaint == "login of User:eve by SPELLS failed: eve is eve"
        with pytest.raises(OutOfOrder):
            await trial.handshake()
        assert not trial.logins

    asyncio.run(main())


def test_an_unknown_mechanism_ends_it() -> None:
    async def main() -> None:
        trial = Trial()
        assert not await trial.handshake("x" * 1000)
        assert trial.it.failure is not None and len(trial.it.failure) < 200
        with pytest.raises(OutOfOrder):
            await trial.handshake()

    asyncio.run(main())


def test_who_has_logged_in_writes_in_no_other_name() -> None:
    """The trail names who has proved a name, and the other one as a claim; the limits count for the former."""

    async def main() -> None:
        trial = Trial(reauth_ms=1000)
        await trial.log_in()
        await trial.handshake()
        with pytest.raises(LoginRefused):
            await trial.step(b"eve")
        (event,) = trial.trail
        assert (event.principal, event.reason) == (ALICE, "eve is eve (it claimed to be User:eve)")
        assert not event.is_claimed and not event.is_of_stranger
        assert trial.it.complaint == "login anew of User:alice as User:eve by SPELLS failed: eve is eve"

    asyncio.run(main())


def test_who_has_logged_in_does_not_become_another() -> None:
    async def main() -> None:
        trial = Trial(reauth_ms=1000)
        await trial.log_in()
        await trial.handshake()
        with pytest.raises(LoginRefused):
            await trial.step(b"b" * 1000)
        (event,) = trial.trail
        assert event.principal == ALICE and "it claimed to be User:bbb" in event.reason

    asyncio.run(main())


def test_a_step_that_does_not_end() -> None:
    async def main() -> None:
        trial = Trial(timeout_s=0.01)
        await trial.handshake()
        with pytest.raises(LoginRefused, match="it took too long"):
            await trial.step(b"never")
        assert trial.counts.failed == 1

    asyncio.run(main())


def test_who_takes_too_long() -> None:
    trial = Trial()
    assert not trial.it.is_late(trial.clock.now + 4)
    assert trial.it.is_late(trial.clock.now + 6)


def test_without_headers() -> None:
    async def main() -> None:
        trial = Trial()
        await trial.handshake(version=0)
        assert trial.it.is_raw
        assert await trial.step(b"alice") == (b"welcome", 0)
        assert not trial.it.is_raw and trial.it.is_passed

    asyncio.run(main())


def test_a_login_expires_and_is_renewed() -> None:
    async def main() -> None:
        trial = Trial(reauth_ms=1000)
        assert await trial.log_in() == 1000
        trial.it.admit(Sent.OTHER, "fetch")
        assert await trial.log_in() == 1000
        assert trial.counts.renewed == 1 and trial.counts.succeeded == 1
        trial.clock.now += 1.1
        with pytest.raises(OutOfOrder, match="expired"):
            trial.it.admit(Sent.OTHER, "fetch")
        assert await trial.log_in() == 1000  # a handshake may still come
        trial.it.admit(Sent.OTHER, "fetch")
        assert trial.counts.expired == 1

    asyncio.run(main())


def test_a_renewal_by_another_mechanism() -> None:
    async def main() -> None:
        trial = Trial(reauth_ms=1000)
        await trial.log_in()
        assert await trial.handshake("OTHER")
        with pytest.raises(LoginRefused, match="'OTHER' requested by client is not supported for re-authentication"):
            await trial.step(b"alice")
        assert trial.counts.renewals_failed == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("expires_at_ms", "reauth_ms", "lifetime_ms"),
    [(None, 0, None), (None, 500, 500), (1700, 0, 700), (1700, 500, 500), (1700, 900, 700), (900, 0, 0)],
)
def test_lifetimes(expires_at_ms: int | None, reauth_ms: int, lifetime_ms: int | None) -> None:
    assert session_lifetime_ms(now_ms=1000, expires_at_ms=expires_at_ms, reauth_ms_max=reauth_ms) == lifetime_ms
