"""DescribeClientQuotas (KIP-546): quotas of users, client ids and addresses. v1 flexible."""

from collections.abc import Mapping
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeClientQuotasRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.client_quotas import QuotaFilter
from ottla.metadata.model.state import QuotaEntity
from ottla.metadata.runtime.feed import MetadataFeed


@api(key=48, versions=(0, 1))
async def describe_client_quotas(request: DescribeClientQuotasRequest, call: Call, feed: MetadataFeed) -> Answer:
    components = [(one.entity_type, one.match_type, one.match) for one in request.components]
    quotas = feed.image.client_quotas
    try:
        asked = QuotaFilter(components, strict=request.strict)
        known = paced(asked.candidates(quotas), call)
        lines = (_line(each, quotas[each]) async for each in known if each in quotas and asked.matches(each))
        entries = await encoded(call, ("entries",), lines)
    except KafkaError as error:
        return call.reply(error_code=error.code, error_message=error.message, entries=None)
    return call.reply(error_code=Code.none, error_message=None, entries=entries)


def _line(entity: QuotaEntity, values: Mapping[str, float]) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "values": [{"key": key, "value": value} for key, value in values.items()],
    }
