"""SASL OAUTHBEARER, the server's side (RFC 7628, KIP-255). Pure: whoever checks the token is a parameter.

client: n,,^Aauth=Bearer TOKEN^A^A      server: nothing more, or {"status":"invalid_token"}
client, after such an error: ^A         server: the login has failed
"""

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from ottla.security.core.logins import Login, LoginRefused, Step
from ottla.security.core.oauth_claims import BadToken
from ottla.security.core.principals import USER, Principal

__all__ = ["OAUTHBEARER", "CheckToken", "OAuthBearerMechanism", "Opening", "parse_opening"]

OAUTHBEARER = "OAUTHBEARER"
MESSAGE_BYTES_MAX = 1 << 17
KEPT_ERROR = b'{"status":"invalid_token"}'
DUMMY = b"\x01"

PAIRS_MAX = 100
# Possessive: what has matched is never tried again, so that a stranger's message costs what its length says.
OPENING = re.compile(
    r"n,(?:a=(?P<authorization>(?:[^\x00,=]++|=2C|=3D)++))?,\x01"
    rf"(?P<pairs>(?:[A-Za-z]++=[\x21-\x7e \t\r\n]++\x01){{0,{PAIRS_MAX}}}+)\x01"
)
BEARER = re.compile(r"bearer ++(?P<token>[-_.A-Za-z0-9]++)", re.IGNORECASE)

CheckToken = Callable[[str], Awaitable[tuple[str, int]]]
"""The principal's name, and when the token expires (milliseconds). Raises BadToken."""


class Opening(NamedTuple):
    token: str
    authorization: str | None
    """As whom the client wants to act, if it says so."""


def parse_opening(data: bytes) -> Opening | None:
    """None for what is none. Extensions are allowed and not looked at, as the RFC says."""
    try:
        found = OPENING.fullmatch(data.decode()) if len(data) <= MESSAGE_BYTES_MAX else None
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    pairs = [pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair]
    given = [value for name, value in pairs if name == "auth"]
    bearer = BEARER.fullmatch(given[0]) if len(given) == 1 else None
    if bearer is None:
        return None
    wanted = found["authorization"]
    return Opening(bearer["token"], None if wanted is None else wanted.replace("=2C", ",").replace("=3D", "="))


class OAuthBearerMechanism:
    name = OAUTHBEARER

    def __init__(self, check: CheckToken) -> None:
        self._check = check

    def begin(self, host: str) -> "OAuthBearerExchange":
        return OAuthBearerExchange(self._check)


class OAuthBearerExchange:
    def __init__(self, check: CheckToken) -> None:
        self._check = check
        self._has_begun = False
        self._error: BadToken | None = None

    async def step(self, data: bytes) -> Step:
        if self._has_begun:
            raise self._end(bytes(data))
        self._has_begun = True
        opening = parse_opening(bytes(data))
        if opening is None:
            raise _refused("a first message that is none of OAUTHBEARER")
        try:
            name, expires_at_ms = await self._check(opening.token)
        except BadToken as error:
            self._error = error
            return Step(KEPT_ERROR)
        if opening.authorization not in (None, name):
            sentence = "Authentication failed: Client requested an authorization id that is different from the token's"
            raise LoginRefused(f"{sentence} principal name", principal=Principal(USER, name))
        return Step(b"", Login(Principal(USER, name), expires_at_ms))

    def _end(self, data: bytes) -> LoginRefused:
        """Kafka's clients show what the server said before."""
        error, self._error = self._error, None
        if error is None or data != DUMMY:
            return _refused("a message out of order")
        return LoginRefused(KEPT_ERROR.decode(), reason=str(error))


def _refused(reason: str) -> LoginRefused:
    sentence = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
    return LoginRefused(sentence, reason=reason)
