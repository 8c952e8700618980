"""SaslAuthenticate: one message of the mechanism that SaslHandshake chose, and its answer.

v1 tells for how long the login holds (KIP-368) · v2 flexible. A login that is refused is answered late.
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import SaslAuthenticateRequest
from ottla.errors import Code
from ottla.security.core.logins import LoginRefused

AFTER_LOGIN = "SaslAuthenticate request received after successful authentication"


@api(key=36, versions=(0, 2))
async def sasl_authenticate(request: SaslAuthenticateRequest, call: Call) -> Answer:
    authentication = call.client.authentication
    if authentication is None or not authentication.is_under_way:
        return call.reply(error_code=Code.illegal_sasl_state, error_message=AFTER_LOGIN)
    try:
        challenge, lifetime_ms = await authentication.step(bytes(request.auth_bytes))
    except LoginRefused as refusal:
        return call.reply(error_code=Code.sasl_authentication_failed, error_message=str(refusal))
    return call.reply(error_code=Code.none, auth_bytes=challenge, session_lifetime=lifetime_ms)
