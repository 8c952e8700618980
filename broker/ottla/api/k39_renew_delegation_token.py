"""RenewDelegationToken (KIP-48): a token lives longer, by its owner or a renewer. v2 flexible."""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import RenewDelegationTokenRequest
from ottla.api.token_requests import change_expiry
from ottla.metadata.decisions.commands import RenewDelegationToken
from ottla.security.core.tokens import TokenMacs


@api(key=39, versions=(1, 2))
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, call: Call, controller: ControllerClient, tokens: TokenMacs
) -> Answer:
    mac, period_ms = request.hmac, request.renew_period
    return await change_expiry(RenewDelegationToken, mac, period_ms, call=call, controller=controller, tokens=tokens)
