"""How a client logs in by SASL: mechanisms, and the exchanges that they begin. Pure.

    exchange = mechanism.begin(host)
    while (step := await exchange.step(data)).login is None:
        data = <what the client answers to step.challenge>

A step may wait (for a key of an identity provider, say), so it is a coroutine; whoever calls it sets the deadline.
"""

from typing import NamedTuple, Protocol

from ottla.security.core.principals import Principal

__all__ = ["Exchange", "Login", "LoginRefused", "Mechanism", "Step"]


class LoginRefused(Exception):
    """`str()` is the sentence that the client gets: it must not say which half was wrong, nor hold a secret. `reason`
    is for the audit log."""

    def __init__(self, sentence: str, *, reason: str = "", principal: Principal | None = None) -> None:
        super().__init__(sentence)
        self.reason = reason or sentence
        self.principal = principal
        """Whom the client claimed to be."""


class Login(NamedTuple):
    principal: Principal
    expires_at_ms: int | None = None
    """When what was shown (a token) is no longer good."""
    by_delegation_token: bool = False


class Step(NamedTuple):
    challenge: bytes
    login: Login | None = None


class Exchange(Protocol):
    async def step(self, data: bytes) -> Step:
        """Raises LoginRefused; the exchange is over then."""


class Mechanism(Protocol):
    @property
    def name(self) -> str: ...

    def begin(self, host: str) -> Exchange: ...
