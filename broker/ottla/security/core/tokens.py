"""Delegation tokens as a broker uses them: found by what proves them, and logged in with by SCRAM. Pure."""

import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping

from ottla.metadata.model.credentials import (
    ITERATIONS_MIN,
    ScramCredential,
    readable_salt,
    salted_password,
    scram_keys,
)
from ottla.metadata.model.tokens import DelegationToken, token_mac, token_password
from ottla.security.core.principals import Principal
from ottla.security.core.scram import Account

__all__ = ["TokenAccounts", "TokenMacs", "principal_of"]

CREDENTIALS_KEPT_MAX = 1_000


def principal_of(text: str) -> Principal:
    kind, _, name = text.partition(":")
    return Principal(kind, name)


class TokenMacs:
    """The tokens of the metadata by their MACs, which are made when a token is first seen. Without a secret key
    (delegation.token.secret.key) there are none."""

    def __init__(self, secret_key: str | None, tokens: Callable[[], Mapping[str, DelegationToken]]) -> None:
        self.is_enabled = bool(secret_key)
        self._secret_key = secret_key or ""
        self._tokens = tokens
        self._seen: Mapping[str, DelegationToken] = {}
        self._ids: dict[bytes, str] = {}
        self._macs: dict[str, bytes] = {}

    def mac(self, token_id: str) -> bytes:
        return self._macs.get(token_id) or token_mac(self._secret_key, token_id)

    def find(self, mac: bytes) -> DelegationToken | None:
        tokens = self._tokens() if self.is_enabled else {}
        if tokens is not self._seen:
            self._follow(tokens)
        token_id = self._ids.get(mac)
        return None if token_id is None else tokens.get(token_id)

    def _follow(self, tokens: Mapping[str, DelegationToken]) -> None:
        for gone in self._macs.keys() - tokens.keys():
            del self._ids[self._macs.pop(gone)]
        for new in tokens.keys() - self._macs.keys():
            mac = self._macs[new] = token_mac(self._secret_key, new)
            self._ids[mac] = new
        self._seen = tokens


class TokenAccounts:
    """Of those who log in with the id of a token and its MAC, by one mechanism. A credential takes milliseconds to
    make: the last ones are kept. Its salt follows from the token, and is the same on all brokers."""

    def __init__(
        self,
        mechanism: int,
        *,
        secret_key: str,
        tokens: Callable[[], Mapping[str, DelegationToken]],
        now_ms: Callable[[], int],
    ) -> None:
        self._mechanism = mechanism
        self._secret_key = secret_key
        self._tokens = tokens
        self._now_ms = now_ms
        self._kept: OrderedDict[str, ScramCredential] = OrderedDict()

    def find(self, token_id: str) -> Account | None:
        token = self._tokens().get(token_id)
        if token is None or token.is_expired(self._now_ms()):
            return None
        credential = self._credential(token_id)
        return Account(credential, principal_of(token.owner), token.expires_ms, by_delegation_token=True)

    def _credential(self, token_id: str) -> ScramCredential:
        kept = self._kept.get(token_id)
        if kept is None:
            kept = self._kept[token_id] = self._make(token_id)
            if len(self._kept) > CREDENTIALS_KEPT_MAX:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(token_id)
        return kept

    def _make(self, token_id: str) -> ScramCredential:
        salt = readable_salt(hmac.digest(self._secret_key.encode(), b"salt " + token_id.encode(), "sha512"))
        password = token_password(token_mac(self._secret_key, token_id))
        salted = salted_password(self._mechanism, password, salt=salt, iterations=ITERATIONS_MIN)
        return ScramCredential(salt, ITERATIONS_MIN, scram_keys(self._mechanism, salted))
