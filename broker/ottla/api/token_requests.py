"""What the APIs of delegation tokens have in common: who may ask at all, and which token is meant."""

from ottla.api.call import Call
from ottla.api.controller_client import ControllerClient
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import ExpireCredentials
from ottla.security.core.principals import ANONYMOUS
from ottla.security.core.tokens import TokenMacs

__all__ = ["NO_TIME", "check_tokens", "token_id"]

NO_TIME = -1


def check_tokens(call: Call, tokens: TokenMacs) -> None:
    """Only who has proved who they are by something else than a token. KafkaError for others, or without a key."""
    client = call.client
    if client.by_delegation_token or (client.authentication is None and client.principal == ANONYMOUS):
        raise KafkaError(Code.delegation_token_request_not_allowed)
    if not tokens.is_enabled:
        raise KafkaError(Code.delegation_token_auth_disabled)


async def token_id(mac: bytes, tokens: TokenMacs, controller: ControllerClient) -> str:
    """KafkaError when there is none. Another broker may just have made it: what the controller has is waited for."""
    found = tokens.find(mac)
    if found is None:
        await controller.submit(ExpireCredentials())
        found = tokens.find(mac)
    if found is None:
        raise KafkaError(Code.delegation_token_not_found)
    return found.id
