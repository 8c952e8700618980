"""SASL/PLAIN (RFC 4616): name and password in one message, as Kafka checks them. Pure."""

import hmac
from collections.abc import Callable, Mapping

from ottla.security.core.logins import Exchange, Login, LoginRefused, Step
from ottla.security.core.principals import USER, Principal

__all__ = ["PLAIN", "PlainMechanism", "users_of"]

PLAIN = "PLAIN"
USER_OPTION = "user_"
REFUSED = "Authentication failed: Invalid username or password"
MALFORMED = "Invalid SASL/PLAIN response: expected 3 tokens, got "
TOKENS = 3
OTHER_NAME = "Authentication failed: Client requested an authorization id that is different from username"
NOBODYS = b"\0"  # compared where the user is unknown: passwords have no zero byte


def users_of(options: Mapping[str, str]) -> dict[str, str]:
    """Passwords by user, of a login module's options `user_NAME="password"`."""
    users = {key: password for key, password in options.items() if key.startswith(USER_OPTION)}
    return {key.removeprefix(USER_OPTION): password for key, password in users.items()}


class PlainMechanism:
    """`users` gives the passwords in force now, by user."""

    name = PLAIN

    def __init__(self, users: Callable[[], Mapping[str, str]]) -> None:
        self._users = users

    def begin(self, host: str) -> Exchange:
        return _PlainExchange(self._users())


class _PlainExchange:
    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    async def step(self, data: bytes) -> Step:
        authorized, name, password = _tokens(data)
        principal = Principal(USER, name)
        if not name or not password:
            missing = "password" if name else "username"
            raise LoginRefused(f"Authentication failed: {missing} not specified", principal=principal)
        known = self._users.get(name)
        right = hmac.compare_digest(NOBODYS if known is None else known.encode(), password.encode())
        if known is None or not right:
            raise LoginRefused(REFUSED, reason="unknown user" if known is None else "wrong password",
                               principal=principal)  # fmt: skip
        if authorized not in ("", name):
            raise LoginRefused(OTHER_NAME, principal=principal)
        return Step(b"", Login(principal))


def _tokens(data: bytes) -> list[str]:
    """Authorization id, name, password. As in Kafka, bytes that are no UTF-8 become the replacement character."""
    tokens = data.decode("utf-8", "replace").split("\0", TOKENS)
    if len(tokens) != TOKENS:
        raise LoginRefused(f"{MALFORMED}{len(tokens)}")
    return tokens
