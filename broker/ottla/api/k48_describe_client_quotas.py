"""DescribeClientQuotas (KIP-546): quotas of users, client ids and addresses. v1 flexible."""

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeClientQuotasRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.client_quotas import matching
from ottla.metadata.runtime.feed import MetadataFeed


@api(key=48, versions=(0, 1))
def describe_client_quotas(request: DescribeClientQuotasRequest, call: Call, feed: MetadataFeed) -> Answer:
    components = [(one.entity_type, one.match_type, one.match) for one in request.components]
    try:
        found = matching(feed.image.client_quotas, components, strict=request.strict)
    except KafkaError as error:
        return call.reply(error_code=error.code, error_message=error.message, entries=None)
    return call.reply(
        error_code=Code.none,
        error_message=None,
        entries=[
            {
                "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
                "values": [{"key": key, "value": value} for key, value in values.items()],
            }
            for entity, values in found
        ],
    )
