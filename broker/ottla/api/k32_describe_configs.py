"""DescribeConfigs: every setting of topics and brokers with its value and where that comes from.

v1 synonyms (KIP-226) · v3 type and documentation (KIP-569) · v4 flexible.
"""

from collections.abc import Hashable
from typing import Any

from ottla.api.authorizing import require_configs
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeConfigsRequest, DescribeConfigsResource
from ottla.api.slices import encoded_or_refused
from ottla.config import ConfigEntry
from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from ottla.metadata.model.topic_names import check_topic_name
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings
from ottla.security.core.access import Operation


@api(key=32, versions=(1, 4), elements_max=None)
async def describe_configs(
    request: DescribeConfigsRequest, call: Call, settings: LiveSettings, feed: MetadataFeed, node_id: int
) -> Answer:
    """In slices, however small the request: a resource has dozens of settings."""

    def entries(resource: DescribeConfigsResource) -> list[ConfigEntry]:
        return _entries(resource.resource_type, resource.resource_name, settings, feed.image, node_id)

    async def line(resource: DescribeConfigsResource) -> dict[str, Any]:
        require_configs(call, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        return _result(resource, request, entries(resource))

    results = await encoded_or_refused(call, ("results",), request.resources, line, refused=_refused, key=_key)
    return call.reply(results=results)


def _key(resource: DescribeConfigsResource) -> Hashable:
    keys = resource.configuration_keys
    return resource.resource_type, resource.resource_name, None if keys is None else frozenset(keys)


def _refused(resource: DescribeConfigsResource, error: KafkaError) -> dict[str, Any]:
    return _named(resource) | {"error_code": error.code, "error_message": error.message, "configs": []}


def _named(resource: DescribeConfigsResource) -> dict[str, Any]:
    return {"resource_type": resource.resource_type, "resource_name": resource.resource_name}


def _result(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, entries: list[ConfigEntry]
) -> dict[str, Any]:
    keys = resource.configuration_keys
    chosen = [entry for entry in entries if keys is None or entry.name in keys]
    return _named(resource) | {
        "error_code": Code.none,
        "error_message": None,
        "configs": [_config(entry, request) for entry in chosen],
    }


def _entries(resource_type: int, name: str, settings: LiveSettings, image: Image, node_id: int) -> list[ConfigEntry]:
    if resource_type == ResourceType.TOPIC:
        check_topic_name(name)
        if name not in image.topics:
            raise KafkaError(Code.unknown_topic_or_partition, f"Topic {name} does not exist")
        return settings.describe_topic(name)
    if resource_type == ResourceType.BROKER:
        if name not in ("", str(node_id)):
            raise KafkaError(
                Code.invalid_request,
                f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
            )
        return settings.describe_broker() if name else settings.describe_defaults()
    if resource_type == ResourceType.GROUP:
        if not name:
            raise KafkaError(Code.invalid_request, "Group name must not be empty")
        return settings.describe_group(name)
    if resource_type in (ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS):
        return []
    raise KafkaError(Code.invalid_request, f"Unsupported resource type: {resource_type}")


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": entry.source,
        "is_sensitive": entry.sensitive,
        "synonyms": [
            {"name": name, "value": value, "source": source}
            for name, value, source in (entry.synonyms if request.include_synonyms else ())
        ],
        "config_type": entry.type,
        "documentation": entry.documentation if request.include_documentation else None,
    }
