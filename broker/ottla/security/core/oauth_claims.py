"""What a token says, and whether it is good for this fleet, as Kafka's validators decide. Pure; signatures are checked
beside this (`security.oauth`).

Errors are BadToken: the text is for the log and the audit trail, and no part of the token is in it.
"""

import base64
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

__all__ = ["BadToken", "ClaimRules", "TokenHeader", "accepted", "claims_of", "header_of", "unsecured_claims"]

KEY_ID_MAX = 1000
EXPIRY_S_MAX = 2**40  # later than anybody can mean, and milliseconds fit into an int64
NAME_MAX = 10_000


class BadToken(Exception):
    pass


class TokenHeader(NamedTuple):
    algorithm: str
    key_id: str | None


class ClaimRules(msgspec.Struct, frozen=True, kw_only=True):
    """`issuer` None: any. `audiences` None: any, empty: only tokens that name none."""

    subject_claim: str = "sub"
    scope_claim: str = "scope"
    issuer: str | None = None
    audiences: frozenset[str] | None = frozenset()
    required_scopes: frozenset[str] = frozenset()
    clock_skew_s: float = 0.0
    needs_issued_at: bool = True


def header_of(token: str) -> TokenHeader:
    header = _object(_part(token, 0), "header")
    algorithm, key_id = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str):
        raise BadToken("a token without a signature algorithm")
    if key_id is not None and not (isinstance(key_id, str) and len(key_id) <= KEY_ID_MAX):
        raise BadToken("a token whose key id is no text, or too long")
    if "crit" in header:
        raise BadToken("a token with critical header parameters, which nobody here knows")
    return TokenHeader(algorithm, key_id)


def claims_of(payload: bytes) -> Mapping[str, Any]:
    return _object(payload, "claims")


def unsecured_claims(token: str) -> Mapping[str, Any]:
    """Of a token without a signature: who sends it may write into it whatever they like."""
    if header_of(token).algorithm != "none" or not token.endswith("."):
        raise BadToken("a token with a signature, where unsecured ones are expected")
    return claims_of(_part(token, 1))


def accepted(claims: Mapping[str, Any], rules: ClaimRules, *, now_ms: int) -> tuple[str, int]:
    """The name of the principal, and until when the token is good (milliseconds)."""
    expires_s = _checked_times(claims, rules, now_ms / 1000)
    if expires_s * 1000 <= now_ms:
        expires_s += rules.clock_skew_s
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise BadToken("a token of another issuer (sasl.oauthbearer.expected.issuer)")
    _check_audience(claims.get("aud"), rules.audiences)
    if not rules.required_scopes <= _scopes(claims.get(rules.scope_claim), rules.scope_claim):
        raise BadToken("a token without the scope that is required")
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip() or len(subject) > NAME_MAX:
        raise BadToken(f"a token without a name in {rules.subject_claim!r} (sasl.oauthbearer.sub.claim.name)")
    return subject.strip(), int(expires_s * 1000)


def _checked_times(claims: Mapping[str, Any], rules: ClaimRules, now_s: float) -> float:
    expires_s, issued_s, begins_s = (_time(claims, name) for name in ("exp", "iat", "nbf"))
    if expires_s is None:
        raise BadToken("a token that does not expire")
    if now_s - rules.clock_skew_s >= expires_s:
        raise BadToken("a token that has expired")
    if begins_s is not None and now_s + rules.clock_skew_s < begins_s:
        raise BadToken("a token that is not good yet")
    if issued_s is None and rules.needs_issued_at:
        raise BadToken("a token that does not say when it was issued")
    if any(each is not None and each > expires_s for each in (issued_s, begins_s)):
        raise BadToken("a token that expires before it begins")
    return expires_s


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= EXPIRY_S_MAX:
        raise BadToken(f"a token whose {name} is no time")
    assert math.isfinite(value)
    return float(value)


def _check_audience(named: object, expected: frozenset[str] | None) -> None:
    """A token for somebody is refused by those who do not know whether they are meant, as in Kafka."""
    if expected is None or (named is None and not expected):
        return
    audiences = {named} if isinstance(named, str) else set(_texts(named, "aud"))
    if audiences.isdisjoint(expected):
        raise BadToken("a token for another audience (sasl.oauthbearer.expected.audience)")


def _scopes(value: object, name: str) -> set[str]:
    if value is None:
        return set()
    return set(value.split()) if isinstance(value, str) else {each.strip() for each in _texts(value, name)}


def _texts(value: object, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadToken(f"a token whose {name} is no list of texts")
    return value


def _part(token: str, index: int) -> bytes:
    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken("a token that has not three parts")
    text = parts[index]
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:  # not Base64, or not even ASCII
        raise BadToken("a token that is not Base64") from None


def _object(data: bytes, what: str) -> Mapping[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadToken(f"a token whose {what} is no JSON") from None
    if not isinstance(value, dict):
        raise BadToken(f"a token whose {what} is no JSON object")
    return value
