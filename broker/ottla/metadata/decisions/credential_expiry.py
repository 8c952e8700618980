"""The controller forgets credentials that are not good any more; they are refused from their time on, anyway. Pure."""

from collections.abc import Iterator

import msgspec

from ottla.metadata.decisions.commands import Context, Decision, ExpireCredentials
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, remove_delegation_token_record, scram_credential_record

__all__ = ["expire", "expiry_due"]


def expire(image: Image, command: ExpireCredentials, context: Context) -> Decision[None]:
    return Decision(None, list(_due(image, context.now_ms)))


def expiry_due(image: Image, context: Context) -> ExpireCredentials | None:
    return ExpireCredentials() if any(True for _ in _due(image, context.now_ms)) else None


def _due(image: Image, now_ms: int) -> Iterator[Record]:
    for owner, credential in image.scram_credentials.items():
        if credential.previous is not None and credential.previous.until_ms <= now_ms:
            yield scram_credential_record(owner, msgspec.structs.replace(credential, previous=None))
    for token in image.delegation_tokens.values():
        if token.is_expired(now_ms):
            yield remove_delegation_token_record(token.id)
