"""CreateAcls (KIP-140): one that exists is as good as made.

v1 prefixes (KIP-290) · v2 flexible · v3 users (KIP-373).
"""

from ottla.api.acl_requests import NO_AUTHORIZER, refuse_unknown
from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import CreateAclsAclCreation, CreateAclsRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import CreateAcls, Outcome
from ottla.metadata.model.acls import AclBinding
from ottla.security.core.access import Operation


@api(key=30, versions=(1, 3), elements_max=MANY_ELEMENTS_MAX)
async def create_acls(request: CreateAclsRequest, call: Call, controller: ControllerClient) -> Answer:
    bindings = [_binding(asked) for asked in request.creations]
    try:
        require_cluster(call, Operation.ALTER)
        if call.client.is_without_authorizer:
            raise KafkaError(Code.security_disabled, NO_AUTHORIZER)
        outcomes = await controller.submit(CreateAcls(bindings))
    except KafkaError as error:
        outcomes = [Outcome(None, error.code, error.message)] * len(bindings)
    return call.reply(results=[{"error_code": each.code, "error_message": each.message or ""} for each in outcomes])


def _binding(asked: CreateAclsAclCreation) -> AclBinding:
    refuse_unknown(
        asked.resource_type, asked.resource_pattern_type, asked.operation, asked.permission_type, of="An ACL to create"
    )
    return AclBinding(
        resource_type=asked.resource_type,
        pattern_type=asked.resource_pattern_type,
        resource_name=asked.resource_name,
        principal=asked.principal,
        host=asked.host,
        operation=asked.operation,
        permission=asked.permission_type,
    )
