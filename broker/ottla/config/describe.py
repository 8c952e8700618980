"""The entries of DescribeConfigs for topics, brokers and the fleet's defaults, as in Kafka. Pure."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.config.broker import BrokerConfig
from ottla.config.check import broker_setting_of
from ottla.config.layers import broker_synonyms, effective_broker, effective_topic
from ottla.config.setting import Setting, Type
from ottla.config.table import BROKER, TOPIC
from ottla.config.values import render

__all__ = ["ConfigEntry", "Source", "Synonym", "describe_broker", "describe_defaults", "describe_topic"]

Texts = Mapping[str, str]


class Source(IntEnum):
    """The numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None when unset or sensitive
    source: Source
    read_only: bool
    sensitive: bool
    type: Type
    documentation: str | None
    synonyms: list[Synonym]

    @property
    def is_default(self) -> bool:
        return self.source is Source.DEFAULT


def describe_topic(static: BrokerConfig, cluster: Texts, broker: Texts, topic: Texts) -> list[ConfigEntry]:
    values = effective_topic(static, cluster, broker, topic)
    shown = {name: value for name, value in values.items() if name in topic or not TOPIC[name].hidden}
    if "internal.segment.bytes" in topic:  # it overrides segment.bytes, which still shows its own value
        without = {name: text for name, text in topic.items() if name != "internal.segment.bytes"}
        shown["segment.bytes"] = effective_topic(static, cluster, broker, without)["segment.bytes"]
    layers = _layers(static, cluster, broker)
    return [_topic_entry(TOPIC[name], _text(shown[name]), name in topic, layers) for name in sorted(shown)]


def describe_broker(static: BrokerConfig, cluster: Texts, broker: Texts) -> list[ConfigEntry]:
    values: dict[str, Any] = dict(effective_broker(static, cluster, broker))
    given = {**static.explicit, **cluster, **broker}
    names = {name for name in values if name not in BROKER or not BROKER[name].hidden} | given.keys()
    layers = _layers(static, cluster, broker)
    return [_broker_entry(name, _text(values.get(name)), layers) for name in sorted(names)]


def describe_defaults(static: BrokerConfig, cluster: Texts) -> list[ConfigEntry]:
    """The fleet-wide resource with the empty name: only the settings that were set there."""
    layers = [(Source.DYNAMIC_DEFAULT_BROKER, cluster)]
    return [_broker_entry(name, cluster[name], layers) for name in sorted(cluster)]


Layers = list[tuple[Source, Texts]]


def _layers(static: BrokerConfig, cluster: Texts, broker: Texts) -> Layers:
    return [
        (Source.DYNAMIC_BROKER, broker),
        (Source.DYNAMIC_DEFAULT_BROKER, cluster),
        (Source.STATIC_BROKER, static.explicit),
        (Source.DEFAULT, DEFAULTS),
    ]


def _text(value: object) -> str | None:
    return None if value is None else render(value)


DEFAULTS: Texts = {name: render(setting.default) for name, setting in BROKER.items() if setting.default is not None}


def _topic_entry(setting: Setting, value: str | None, overridden: bool, layers: Layers) -> ConfigEntry:
    synonyms = [Synonym(setting.name, value, Source.TOPIC)] if overridden else []
    if setting.synonyms:
        synonyms += _synonyms(setting.synonyms[0], layers, sensitive=False)
    return _entry(setting.name, setting, value, synonyms, read_only=False)


def _broker_entry(name: str, value: str | None, layers: Layers) -> ConfigEntry:
    setting = broker_setting_of(name)
    sensitive = setting is None or setting.sensitive
    read_only = setting is None or setting.name != name or setting.read_only
    return _entry(name, setting, value, _synonyms(name, layers, sensitive=sensitive), read_only=read_only)


def _entry(
    name: str, setting: Setting | None, value: str | None, synonyms: list[Synonym], *, read_only: bool
) -> ConfigEntry:
    sensitive = setting is None or setting.sensitive  # an unknown setting may hold a secret
    return ConfigEntry(
        name=name,
        value=None if sensitive else value,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        read_only=read_only,
        sensitive=sensitive,
        type=setting.type if setting else Type.UNKNOWN,
        documentation=setting.doc if setting else None,
        synonyms=synonyms,
    )


def _synonyms(name: str, layers: Layers, *, sensitive: bool) -> list[Synonym]:
    """Every source that sets it, in order of precedence. As in Kafka, sources before the name itself are omitted."""
    found = [
        Synonym(other, None if sensitive else layer[other], source)
        for source, layer in layers
        for other in broker_synonyms(name)
        if other in layer
    ]
    start = next((at for at, synonym in enumerate(found) if synonym.name == name), len(found))
    return found[start:]
