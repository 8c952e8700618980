"""DescribeDelegationToken (KIP-48): one's own tokens, and those that one may describe. v2 flexible · v3 requester."""

from collections.abc import Callable
from typing import Any

from ottla.api.authorizing import sees
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeDelegationTokenRequest
from ottla.api.slices import encoded, paced
from ottla.api.token_requests import check_tokens
from ottla.errors import Code, KafkaError
from ottla.metadata.model.tokens import DelegationToken
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource
from ottla.security.core.principals import Principal
from ottla.security.core.tokens import TokenMacs, principal_of


@api(key=41, versions=(1, 3))
async def describe_delegation_token(
    request: DescribeDelegationTokenRequest, call: Call, feed: MetadataFeed, tokens: TokenMacs
) -> Answer:
    try:
        check_tokens(call, tokens)
    except KafkaError as error:
        return call.reply(error_code=error.code, tokens=[])
    kept = list(feed.image.delegation_tokens.values())
    is_asked_for = _filter(request)
    lines = (_line(token, tokens) async for token in paced(kept, call) if is_asked_for(token) and _may_see(call, token))
    return call.reply(error_code=Code.none, tokens=await encoded(call, ("tokens",), lines))


def _filter(request: DescribeDelegationTokenRequest) -> Callable[[DelegationToken], bool]:
    """No owners named: none; null: all."""
    owners = request.owners
    if owners is None:
        return lambda token: True
    named = {f"{each.principal_type}:{each.principal_name}" for each in owners}
    return lambda token: not named.isdisjoint((token.owner, token.requester, *token.renewers))


def _may_see(call: Call, token: DelegationToken) -> bool:
    return (
        token.concerns(str(call.client.principal))
        or sees(call, Operation.DESCRIBE, Resource.DELEGATION_TOKEN, token.id)
        or sees(call, Operation.DESCRIBE_TOKENS, Resource.USER, token.owner)
    )


def _line(token: DelegationToken, tokens: TokenMacs) -> dict[str, Any]:
    owner, requester = principal_of(token.owner), principal_of(token.requester)
    return {
        "principal_type": owner.kind,
        "principal_name": owner.name,
        "token_requester_principal_type": requester.kind,
        "token_requester_principal_name": requester.name,
        "issue_timestamp": token.issued_ms,
        "expiry_timestamp": token.expires_ms,
        "max_timestamp": token.expires_ms_max,
        "token_id": token.id,
        "hmac": tokens.mac(token.id),
        "renewers": [_renewer(principal_of(each)) for each in token.renewers],
    }


def _renewer(principal: Principal) -> dict[str, str]:
    return {"principal_type": principal.kind, "principal_name": principal.name}
