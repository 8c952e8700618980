"""DescribeAcls (KIP-140): the ACLs that fit a filter, by what they are about. v1 prefixes (KIP-290) · v2 flexible ·
v3 users (KIP-373)."""

from typing import Any

from ottla.api.acl_requests import acl_filter_of, described
from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeAclsRequest
from ottla.api.slices import each, encoded, paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.acls import check_filter, fits
from ottla.metadata.model.acls import AclBinding
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation

Pattern = tuple[int, int, str]


@api(key=29, versions=(1, 3))
async def describe_acls(request: DescribeAclsRequest, call: Call, feed: MetadataFeed) -> Answer:
    require_cluster(call, Operation.DESCRIBE)
    if call.client.is_without_authorizer:
        raise KafkaError(Code.security_disabled, "No Authorizer is configured on the broker")
    acl_filter = acl_filter_of(request)
    check_filter(acl_filter)
    found: dict[Pattern, list[AclBinding]] = {}
    async for binding in paced(feed.image.acls.values(), call):
        if fits(acl_filter, binding):
            found.setdefault((binding.resource_type, binding.pattern_type, binding.resource_name), []).append(binding)
    resources = await encoded(call, ("resources",), each(found.items(), _resource, call))
    return call.reply(error_code=Code.none, error_message=None, resources=resources)


async def _resource(found: tuple[Pattern, list[AclBinding]]) -> dict[str, Any]:
    (resource_type, pattern_type, name), bindings = found
    acls = [described(binding) for binding in bindings]
    return {"resource_type": resource_type, "resource_name": name, "pattern_type": pattern_type, "acls": acls}
