"""ExpireDelegationToken (KIP-48): a token ends at another time, or at once, by its owner or a renewer. v2 flexible."""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import ExpireDelegationTokenRequest
from ottla.api.token_requests import change_expiry
from ottla.metadata.decisions.commands import EndDelegationToken
from ottla.security.core.tokens import TokenMacs


@api(key=40, versions=(1, 2))
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, call: Call, controller: ControllerClient, tokens: TokenMacs
) -> Answer:
    mac, period_ms = request.hmac, request.expiry_time_period
    return await change_expiry(EndDelegationToken, mac, period_ms, call=call, controller=controller, tokens=tokens)
