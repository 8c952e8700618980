"""ListConfigResources: which resources can have settings (KIP-1142). v0 client metrics only."""

from collections.abc import Iterable

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import ListConfigResourcesRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from ottla.metadata.runtime.feed import MetadataFeed

LISTED = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


@api(key=74, versions=(0, 1))
async def list_config_resources(request: ListConfigResourcesRequest, call: Call, feed: MetadataFeed) -> Answer:
    asked = (request.resource_types or LISTED) if call.version >= 1 else (ResourceType.CLIENT_METRICS,)
    if any(resource_type not in LISTED for resource_type in asked):
        return call.reply(error_code=Code.unsupported_version)
    image = feed.image
    looked_at = ((kind, name) for kind in dict.fromkeys(asked) for name in _names(kind, image))
    lines = (
        {"resource_name": name, "resource_type": kind}
        async for kind, name in paced(looked_at, call)
        if name is not None
    )
    resources = await encoded(call, ("config_resources",), lines)
    return call.reply(error_code=Code.none, config_resources=resources)


def _names(resource_type: int, image: Image) -> Iterable[str | None]:
    """None for each that was looked at and is of another type."""
    if resource_type == ResourceType.TOPIC:
        return image.topics
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return map(str, image.brokers)
    return (name if kind == resource_type else None for kind, name in image.configs)
