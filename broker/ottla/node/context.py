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
from ottla.metadata.model.state import ResourceType
from ottla.replica.settings import LiveSettings

__all__ = ["make_context"]


def make_context(settings: LiveSettings, **facts: Any) -> Context:
    return Context(
        default_partitions=settings.broker("num.partitions"),
        default_replication_factor=settings.broker("default.replication.factor"),
        check_config=lambda kind, name, value: check_setting(kind, name, value, settings),
        is_list_setting=is_list,
        default_setting=default_text,
        min_insync_replicas=settings.broker("min.insync.replicas"),
        unclean_elections=settings.broker("unclean.leader.election.enable"),
        topics_may_be_deleted=settings.broker("delete.topic.enable"),
        token_expiry_ms=settings.broker("delegation.token.expiry.time.ms"),
        token_lifetime_ms_max=settings.broker("delegation.token.max.lifetime.ms"),
        **facts,
    )


def check_setting(resource_type: int, name: str, value: str, settings: LiveSettings) -> str | None:
    """None when the value is good, otherwise the message for the client."""
    if resource_type == ResourceType.TOPIC:
        return check_topic_setting(name, value)
    if resource_type == ResourceType.GROUP:
        return check_group_setting(name, value, settings.broker)
    return check_broker_setting(name, value, dynamic=True)


def is_list(resource_type: int, name: str) -> bool:
    table = TOPIC if resource_type == ResourceType.TOPIC else BROKER
    return name in table and table[name].type is Type.LIST


def default_text(resource_type: int, name: str) -> str | None:
    table = TOPIC if resource_type == ResourceType.TOPIC else BROKER
    return render(table[name].default) if name in table and table[name].default is not None else None
