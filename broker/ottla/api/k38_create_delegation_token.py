"""CreateDelegationToken (KIP-48): a token for oneself, or for a user for whom one may make them.

v2 flexible · v3 another owner (KIP-373).
"""

from typing import Any

from ottla.api.authorizing import may
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import CreateDelegationTokenRequest
from ottla.api.token_requests import NO_TIME, check_tokens
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import CreateDelegationToken
from ottla.metadata.model.tokens import DelegationToken
from ottla.security.core.access import Operation, Resource
from ottla.security.core.principals import USER, Principal
from ottla.security.core.tokens import TokenMacs


@api(key=38, versions=(1, 3))
async def create_delegation_token(
    request: CreateDelegationTokenRequest, call: Call, controller: ControllerClient, tokens: TokenMacs
) -> Answer:
    owner = _owner(request, call)
    try:
        token = await _create(request, call, owner, controller, tokens)
    except KafkaError as error:
        return _reply(call, owner, error_code=error.code)
    return _reply(
        call,
        owner,
        error_code=Code.none,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.expires_ms_max,
        token_id=token.id,
        hmac=tokens.mac(token.id),
    )


async def _create(
    request: CreateDelegationTokenRequest,
    call: Call,
    owner: Principal,
    controller: ControllerClient,
    tokens: TokenMacs,
) -> DelegationToken:
    check_tokens(call, tokens)
    requester = call.client.principal
    if owner != requester and not may(call, Operation.CREATE_TOKENS, Resource.USER, str(owner)):
        raise KafkaError(Code.delegation_token_authorization_failed)
    renewers = [f"{each.principal_type}:{each.principal_name}" for each in request.renewers]
    if any(each.principal_type != USER for each in request.renewers):
        raise KafkaError(Code.invalid_principal_type)
    command = CreateDelegationToken(str(owner), str(requester), renewers, request.max_lifetime)
    return await controller.submit(command)


def _owner(request: CreateDelegationTokenRequest, call: Call) -> Principal:
    if call.version < 3 or not request.owner_principal_name:
        return call.client.principal
    return Principal(request.owner_principal_type or USER, request.owner_principal_name)


def _reply(call: Call, owner: Principal, **more: Any) -> Answer:
    requester = call.client.principal
    nothing = {"issue_timestamp": NO_TIME, "expiry_timestamp": NO_TIME, "max_timestamp": NO_TIME}
    return call.reply(
        **{
            **nothing,
            "token_id": "",
            "hmac": b"",
            "principal_type": owner.kind,
            "principal_name": owner.name,
            "token_requester_principal_type": requester.kind,
            "token_requester_principal_name": requester.name,
            **more,
        }
    )
