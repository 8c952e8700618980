"""Settings that a consumer group can have of its own, within the limits that the broker's settings draw. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.config.describe import ConfigEntry, Source, Synonym
from ottla.config.table import BROKER
from ottla.config.values import BadValue, parse, render

__all__ = ["GROUP_SETTINGS", "check_group_setting", "describe_group"]

# name → the broker's settings that give the default, the least and the most
GROUP_SETTINGS: Mapping[str, tuple[str, str, str]] = {
    "consumer.session.timeout.ms": (
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    "consumer.heartbeat.interval.ms": (
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
}
Broker = Callable[[str], Any]


def check_group_setting(name: str, text: str, broker: Broker) -> str | None:
    """None when it may be set so, otherwise the message for the client."""
    if name not in GROUP_SETTINGS:
        return f"Unknown group config name: {name}"
    default, least, most = GROUP_SETTINGS[name]
    try:
        value = parse(BROKER[default], text)
    except BadValue as refusal:
        return str(refusal).replace(default, name)
    if value < broker(least):
        return f"{name} must be greater than or equal to {least}"
    if value > broker(most):
        return f"{name} must be less than or equal to {most}"
    return None


def describe_group(own: Mapping[str, str], broker: Broker) -> list[ConfigEntry]:
    return [_entry(name, own.get(name), render(broker(default))) for name, (default, _, _) in GROUP_SETTINGS.items()]


def _entry(name: str, own: str | None, default: str) -> ConfigEntry:
    setting = BROKER[GROUP_SETTINGS[name][0]]
    synonyms = [Synonym(name, own, Source.GROUP)] if own is not None else []
    synonyms.append(Synonym(setting.name, default, Source.DEFAULT))
    return ConfigEntry(
        name=name,
        value=default if own is None else own,
        source=synonyms[0].source,
        read_only=False,
        sensitive=False,
        type=setting.type,
        documentation=setting.doc,
        synonyms=synonyms,
    )
