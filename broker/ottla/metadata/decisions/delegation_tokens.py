"""Decisions about delegation tokens (KIP-48), with Kafka's codes. Pure.

Whether somebody may ask at all is for the broker that was asked; whose token it is, is looked at here.
"""

import msgspec

from ottla.errors import Code, KafkaError
from ottla.ids import uuid_text
from ottla.metadata.decisions.commands import (
    Context,
    CreateDelegationToken,
    Decision,
    EndDelegationToken,
    Limits,
    RenewDelegationToken,
)
from ottla.metadata.decisions.features import security_records
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import delegation_token_record, remove_delegation_token_record
from ottla.metadata.model.tokens import DelegationToken
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["RENEWERS_MAX", "create", "end", "renew"]

RENEWERS_MAX = 100
USER_PREFIX = "User:"


def create(image: Image, command: CreateDelegationToken, context: Context) -> Decision[DelegationToken]:
    _check(image, command, context)
    lifetime_ms = context.token_lifetime_ms_max
    if command.lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, command.lifetime_ms)
    token = DelegationToken(
        id=uuid_text(context.new_uuid()),
        owner=command.owner,
        requester=command.requester,
        renewers=tuple(command.renewers),
        issued_ms=context.now_ms,
        expires_ms=context.now_ms + min(lifetime_ms, context.token_expiry_ms),
        expires_ms_max=context.now_ms + lifetime_ms,
    )
    return Decision(token, [*security_records(image, context), delegation_token_record(token)])


def _check(image: Image, command: CreateDelegationToken, context: Context) -> None:
    principals = [command.owner, command.requester, *command.renewers]
    if not all(each.startswith(USER_PREFIX) for each in command.renewers):
        raise KafkaError(Code.invalid_principal_type, "Renewers are users")
    if len(command.renewers) > RENEWERS_MAX:
        raise KafkaError(Code.invalid_request, f"A delegation token has at most {RENEWERS_MAX} renewers")
    if any(is_too_long(each) for each in principals):
        raise KafkaError(Code.invalid_request, f"A principal has at most {TEXT_BYTES_MAX} bytes")
    _check_room(image, command.owner, context.limits)


def _check_room(image: Image, owner: str, limits: Limits) -> None:
    """One owner cannot take what is there for all."""
    tokens = image.delegation_tokens
    if len(tokens) >= (most := limits.tokens_in_fleet_max):
        raise KafkaError(Code.policy_violation, f"This fleet has room for {most} delegation tokens; end some")
    most = limits.tokens_of_owner_max
    if len(tokens) >= most and sum(token.owner == owner for token in tokens.values()) >= most:
        raise KafkaError(Code.policy_violation, f"{owner} has {most} delegation tokens, as many as one may; end some")


def renew(image: Image, command: RenewDelegationToken, context: Context) -> Decision[int]:
    token = _token(image, command.token_id, command.principal, context)
    period_ms = context.token_expiry_ms
    if command.period_ms > 0:
        period_ms = min(period_ms, command.period_ms)
    return _expiring(token, context.now_ms + period_ms)


def end(image: Image, command: EndDelegationToken, context: Context) -> Decision[int]:
    token = _token(image, command.token_id, command.principal, context)
    if command.period_ms < 0:
        return Decision(context.now_ms, [remove_delegation_token_record(token.id)])
    return _expiring(token, context.now_ms + command.period_ms)


def _expiring(token: DelegationToken, at_ms: int) -> Decision[int]:
    expires_ms = min(token.expires_ms_max, at_ms)
    return Decision(expires_ms, [delegation_token_record(msgspec.structs.replace(token, expires_ms=expires_ms))])


def _token(image: Image, token_id: str, principal: str, context: Context) -> DelegationToken:
    token = image.delegation_tokens.get(token_id)
    if token is None:
        raise KafkaError(Code.delegation_token_not_found, "There is no such delegation token")
    if token.is_expired(context.now_ms):
        raise KafkaError(Code.delegation_token_expired, "The delegation token has expired")
    if not token.is_of(principal):
        raise KafkaError(
            Code.delegation_token_owner_mismatch, "The delegation token is neither yours, nor yours to renew"
        )
    return token
