"""OAUTHBEARER as a listener's settings ask for it: whose tokens, and how their signatures are checked."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import jwt

from ottla.errors import Refusal
from ottla.ports import Clock
from ottla.security.core.oauth_claims import BadToken, ClaimRules, accepted, claims_of, header_of, unsecured_claims
from ottla.security.core.oauthbearer import OAuthBearerMechanism
from ottla.security.signing_keys import ASYMMETRIC, SigningKeys
from ottla.system import Threads

__all__ = ["UNSECURED_HANDLER", "SignedTokens", "UnsecuredTokens", "oauth_mechanism"]

URL = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER = "sasl.server.callback.handler.class"
UNSECURED_HANDLER = "OAuthBearerUnsecuredValidatorCallbackHandler"


class SignedTokens:
    def __init__(self, keys: SigningKeys, rules: ClaimRules, clock: Clock) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock
        self._signatures = jwt.PyJWS()

    async def check(self, token: str) -> tuple[str, int]:
        header = header_of(token)
        if header.algorithm not in ASYMMETRIC:
            raise BadToken("a token that is not signed, or with a shared secret")
        for each in await self._keys.for_token(header.key_id, header.algorithm):
            try:
                payload = self._signatures.decode(token, each.key, algorithms=[header.algorithm])
            except jwt.PyJWTError:
                continue
            return accepted(claims_of(payload), self._rules, now_ms=self._clock.wall_ms())
        raise BadToken("a token that no key of the provider has signed")


class UnsecuredTokens:
    """For development: everybody is who they say."""

    def __init__(self, rules: ClaimRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock

    async def check(self, token: str) -> tuple[str, int]:
        return accepted(unsecured_claims(token), self._rules, now_ms=self._clock.wall_ms())


def oauth_mechanism(
    setting: Callable[[str], Any], *, clock: Clock, threads: Threads, options: Mapping[str, str] | None = None
) -> OAuthBearerMechanism:
    """`setting` gives a listener's setting by Kafka's name, `options` are those of its JAAS line. Refusal when nobody
    could tell whether a token is good."""
    if str(setting(HANDLER) or "").rpartition(".")[2] == UNSECURED_HANDLER:
        return OAuthBearerMechanism(UnsecuredTokens(_unsecured_rules(options or {}), clock).check)
    url = setting(URL)
    if not url:
        raise Refusal(f"OAUTHBEARER needs {URL}, where the signing keys of the identity provider are")
    _check_url(url)
    keys = SigningKeys(
        url,
        clock=clock,
        threads=threads,
        refresh_ms=setting("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        backoff_ms=setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        backoff_ms_max=setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    )
    rules = ClaimRules(
        subject_claim=setting("sasl.oauthbearer.sub.claim.name"),
        scope_claim=setting("sasl.oauthbearer.scope.claim.name"),
        issuer=setting("sasl.oauthbearer.expected.issuer"),
        audiences=frozenset(setting("sasl.oauthbearer.expected.audience") or ()),
        clock_skew_s=setting("sasl.oauthbearer.clock.skew.seconds"),
    )
    return OAuthBearerMechanism(SignedTokens(keys, rules, clock).check)


def _check_url(url: str) -> None:
    try:
        address = urlsplit(url)
        usable = bool(address.path) if address.scheme == "file" else bool(address.hostname) and address.port != 0
    except ValueError:
        usable = False
        address = urlsplit("")
    if not usable or address.scheme not in ("file", "http", "https") or not url.isascii() or " " in url:
        raise Refusal(f"{URL}={url}: an address such as https://provider/jwks or file:///etc/jwks.json is expected")


def _unsecured_rules(options: Mapping[str, str]) -> ClaimRules:
    """As Kafka's class of that name reads its options."""
    prefix = "unsecuredValidator"
    skew_ms = options.get(f"{prefix}AllowableClockSkewMs", "").strip() or "0"
    if not (skew_ms.isascii() and skew_ms.isdecimal() and len(skew_ms) < 10):
        raise Refusal(f"{prefix}AllowableClockSkewMs={skew_ms}: a number of milliseconds is expected")
    return ClaimRules(
        subject_claim=options.get(f"{prefix}PrincipalClaimName", "").strip() or "sub",
        scope_claim=options.get(f"{prefix}ScopeClaimName", "").strip() or "scope",
        required_scopes=frozenset(options.get(f"{prefix}RequiredScope", "").split()),
        clock_skew_s=int(skew_ms) / 1000,
        audiences=None,
        needs_issued_at=False,
    )
