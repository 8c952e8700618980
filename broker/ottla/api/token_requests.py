"""What the APIs of delegation tokens have in common: who may ask at all, which token is meant, how long it lives."""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import EndDelegationToken, ExpireCredentials, RenewDelegationToken
from ottla.security.core.principals import ANONYMOUS
from ottla.security.core.tokens import TokenMacs

__all__ = ["NO_TIME", "change_expiry", "check_tokens"]

NO_TIME = -1


def check_tokens(call: Call, tokens: TokenMacs) -> None:
    """Only who has proved who they are by something else than a token. KafkaError for others, or without a key."""
    client = call.client
    if client.by_delegation_token or (client.authentication is None and client.principal == ANONYMOUS):
        raise KafkaError(Code.delegation_token_request_not_allowed)
    if not tokens.is_enabled:
        raise KafkaError(Code.delegation_token_auth_disabled)


async def change_expiry(
    change: type[RenewDelegationToken | EndDelegationToken],
    mac: bytes,
    period_ms: int,
    *,
    call: Call,
    controller: ControllerClient,
    tokens: TokenMacs,
) -> Answer:
    """The answer says until when the token lives, or why that did not change."""
    try:
        check_tokens(call, tokens)
        meant = await _token_id(bytes(mac), tokens, controller)
        expires_ms = await controller.submit(change(meant, str(call.client.principal), period_ms))
    except KafkaError as error:
        return call.reply(error_code=error.code, expiry_timestamp=NO_TIME)
    return call.reply(error_code=Code.none, expiry_timestamp=expires_ms)


async def _token_id(mac: bytes, tokens: TokenMacs, controller: ControllerClient) -> str:
    """KafkaError when there is none. Another broker may just have made it: what the controller has is waited for."""
    found = tokens.find(mac)
    if found is None:
        await controller.submit(ExpireCredentials())
        found = tokens.find(mac)
    if found is None:
        raise KafkaError(Code.delegation_token_not_found)
    return found.id
