"""What the controller may know of settings when it decides."""

from typing import Any

from ottla.config import (
    BROKER,
    TOPIC,
    Type,
    check_broker_setting,
    check_group_setting,
    check_topic_setting,
    render,
)
from ottla.metadata.decisions.commands import Context
from ottla.metadata.model.state import ConfigResource, ResourceType
from ottla.replica.settings import LiveSettings

__all__ = ["make_context"]


def make_context(settings: LiveSettings, **facts: Any) -> Context:
    return Context(
        default_partitions=settings.broker("num.partitions"),
        default_replication_factor=settings.broker("default.replication.factor"),
        check_config=lambda resource, name, value: check_setting(resource, name, value, settings),
        is_list_setting=is_list,
        default_setting=default_text,
        min_insync_replicas=settings.broker("min.insync.replicas"),
        unclean_elections=settings.broker("unclean.leader.election.enable"),
        topics_may_be_deleted=settings.broker("delete.topic.enable"),
        token_expiry_ms=settings.broker("delegation.token.expiry.time.ms"),
        token_lifetime_ms_max=settings.broker("delegation.token.max.lifetime.ms"),
        **facts,
    )


def check_setting(resource: ConfigResource, name: str, value: str, settings: LiveSettings) -> str | None:
    """None when the value is good, otherwise the message for the client."""
    resource_type, resource_name = resource
    if resource_type == ResourceType.TOPIC:
        return check_topic_setting(name, value)
    if resource_type == ResourceType.GROUP:
        return check_group_setting(name, value, settings.broker)
    fleet_wide = None if resource_name else check_broker_setting(name, value, per_broker=False)
    return fleet_wide or check_broker_setting(name, value)


def is_list(resource_type: int, name: str) -> bool:
    table = TOPIC if resource_type == ResourceType.TOPIC else BROKER
    return name in table and table[name].type is Type.LIST


def default_text(resource_type: int, name: str) -> str | None:
    table = TOPIC if resource_type == ResourceType.TOPIC else BROKER
    return render(table[name].default) if name in table and table[name].default is not None else None
