"""Delegation tokens (KIP-48): somebody else may act for their owner until they expire. Pure, immutable.

A token is proved by a MAC that whoever knows the fleet's secret key can make from its id, so it is not kept.
"""

import base64
import hmac

import msgspec

__all__ = ["DelegationToken", "token_mac", "token_password"]


class DelegationToken(msgspec.Struct, frozen=True, gc=False):
    """Principals are written as Kafka does: `User:alice`."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    expires_ms_max: int

    def is_expired(self, now_ms: int) -> bool:
        return min(self.expires_ms, self.expires_ms_max) < now_ms

    def is_of(self, principal: str) -> bool:
        """Who may renew and end it."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Who may see it."""
        return self.is_of(principal) or principal == self.requester


def token_mac(secret_key: str, token_id: str) -> bytes:
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_password(mac: bytes) -> str:
    """With which somebody logs in by SCRAM who has the token."""
    return base64.b64encode(mac).decode()
