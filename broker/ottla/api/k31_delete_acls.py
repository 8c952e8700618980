"""DeleteAcls (KIP-140): whatever fits one of the filters. v1 prefixes (KIP-290) · v2 flexible · v3 users (KIP-373)."""

from typing import Any

from ottla.api.acl_requests import NO_AUTHORIZER, acl_filter_of, described
from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import api
from ottla.api.requests import DeleteAclsRequest
from ottla.api.slices import each, encoded
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import DeleteAcls, Outcome
from ottla.metadata.model.acls import AclBinding
from ottla.security.core.access import Operation

FilterOutcome = Outcome[list[AclBinding]]


@api(key=31, versions=(1, 3))
async def delete_acls(request: DeleteAclsRequest, call: Call, controller: ControllerClient) -> Answer:
    filters = [acl_filter_of(asked) for asked in request.filters]
    outcomes: list[FilterOutcome]
    try:
        require_cluster(call, Operation.ALTER)
        if call.client.is_without_authorizer:
            raise KafkaError(Code.security_disabled, NO_AUTHORIZER)
        outcomes = await controller.submit(DeleteAcls(filters))
    except KafkaError as error:
        outcomes = [Outcome([], error.code, error.message)] * len(filters)
    return call.reply(filter_results=await encoded(call, ("filter_results",), each(outcomes, _line, call)))


async def _line(outcome: FilterOutcome) -> dict[str, Any]:
    matching = [_matching(binding) for binding in outcome.value]
    return {"error_code": outcome.code, "error_message": outcome.message, "matching_acls": matching}


def _matching(binding: AclBinding) -> dict[str, Any]:
    return {
        "error_code": Code.none,
        "error_message": None,
        "resource_type": binding.resource_type,
        "resource_name": binding.resource_name,
        "pattern_type": binding.pattern_type,
        **described(binding),
    }
