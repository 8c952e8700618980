"""RenewDelegationToken (KIP-48): a token lives longer, by its owner or a renewer. v2 flexible."""

from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import RenewDelegationTokenRequest
from ottla.api.token_requests import NO_TIME, check_tokens, token_id
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import RenewDelegationToken
from ottla.security.core.tokens import TokenMacs


@api(key=39, versions=(1, 2))
async def renew_delegation_token(
    request: RenewDelegationTokenRequest, call: Call, controller: ControllerClient, tokens: TokenMacs
) -> Answer:
    try:
        check_tokens(call, tokens)
        meant = await token_id(bytes(request.hmac), tokens, controller)
        expires_ms = await controller.submit(
            RenewDelegationToken(meant, str(call.client.principal), request.renew_period)
        )
    except KafkaError as error:
        return call.reply(error_code=error.code, expiry_timestamp=NO_TIME)
    return call.reply(error_code=Code.none, expiry_timestamp=expires_ms)
