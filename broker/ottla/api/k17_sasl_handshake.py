"""SaslHandshake: which mechanism the client logs in with, and which there are.

v1 the login goes on in SaslAuthenticate requests; after v0 it goes on in bare messages of the mechanism (KIP-152).
Sent by a client that is logged in, it begins to renew the login (KIP-368).
"""

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import SaslHandshakeRequest
from ottla.errors import Code


@api(key=17, versions=(0, 1))
async def sasl_handshake(request: SaslHandshakeRequest, call: Call) -> Answer:
    authentication = call.client.authentication
    if authentication is None or not authentication.may_begin(call.version):
        return call.reply(error_code=Code.illegal_sasl_state)
    known = await authentication.handshake(request.mechanism, call.version)
    code = Code.none if known else Code.unsupported_sasl_mechanism
    return call.reply(error_code=code, mechanisms=authentication.mechanisms)
