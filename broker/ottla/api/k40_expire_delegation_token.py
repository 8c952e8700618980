"""ExpireDelegationToken (KIP-48): a token ends at another time, or at once, by its owner or a renewer. v2 flexible."""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import ExpireDelegationTokenRequest
from ottla.api.token_requests import NO_TIME, check_tokens, token_id
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import EndDelegationToken
from ottla.security.core.tokens import TokenMacs


@api(key=40, versions=(1, 2))
async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, call: Call, controller: ControllerClient, tokens: TokenMacs
) -> Answer:
    try:
        check_tokens(call, tokens)
        meant = await token_id(bytes(request.hmac), tokens, controller)
        expires_ms = await controller.submit(
            EndDelegationToken(meant, str(call.client.principal), request.expiry_time_period)
        )
    except KafkaError as error:
        return call.reply(error_code=error.code, expiry_timestamp=NO_TIME)
    return call.reply(error_code=Code.none, expiry_timestamp=expires_ms)
