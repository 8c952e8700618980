"""The effective value of a setting: the topic's, else the broker's, the fleet's, server.properties', the default. Pure.

Dynamic values are texts from the metadata log; one that does not parse, or that only a file
may give for a listener, is ignored, as in Kafka.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ottla.config.broker import BrokerConfig
from ottla.config.check import broker_setting_of, may_change
from ottla.config.setting import HOUR_MS
from ottla.config.table import BROKER, TOPIC
from ottla.config.values import BadValue, parse

__all__ = ["broker_synonyms", "effective_broker", "effective_topic", "without_effect"]

Texts = tuple[tuple[str, str], ...]

RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
ROLL = ("log.roll.ms", "log.roll.hours")
JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
SYNONYMS = {name: names for names in (RETENTION, ROLL, JITTER) for name in names} | {
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}
IN_MS = {".hours": HOUR_MS, ".minutes": 60_000}


def broker_synonyms(name: str) -> tuple[str, ...]:
    """Broker settings for the same value in other units, in order of precedence; for a listener's, the plain one."""
    if name in SYNONYMS:
        return SYNONYMS[name]
    setting = broker_setting_of(name)
    return (name,) if setting is None or setting.name == name else (name, setting.name)


def effective_broker(static: BrokerConfig, cluster: Mapping[str, str], broker: Mapping[str, str]) -> Mapping[str, Any]:
    """Typed values of all broker settings."""
    return _effective_broker(static, _texts(cluster), _texts(broker))


def effective_topic(
    static: BrokerConfig, cluster: Mapping[str, str], broker: Mapping[str, str], topic: Mapping[str, str]
) -> Mapping[str, Any]:
    """Typed values of all topic settings. Topics that set the same share one mapping."""
    return _effective_topic(static, _texts(cluster), _texts(broker), _texts(topic))


def without_effect(cluster: Mapping[str, str], broker: Mapping[str, str]) -> list[str]:
    """Names of dynamic settings that are ignored because only a file may give them, at this level."""
    layers = ((cluster, False), (broker, True))
    return sorted(name for layer, per_broker in layers for name in layer if not may_change(name, per_broker=per_broker))


def _texts(layer: Mapping[str, str]) -> Texts:
    return tuple(sorted(layer.items())) if layer else ()


@lru_cache(maxsize=64)
def _effective_broker(static: BrokerConfig, cluster: Texts, broker: Texts) -> Mapping[str, Any]:
    values = dict(static.values)
    layers = ((cluster, False), (broker, True))
    for name, text, per_broker in ((*pair, per_broker) for layer, per_broker in layers for pair in layer):
        setting = broker_setting_of(name)
        if setting is None or not may_change(name, per_broker=per_broker):
            continue
        try:
            value = parse(setting, text)
        except BadValue:
            continue
        # A dynamic value overrides the file's values in other units.
        values.update((other, BROKER[other].default) for other in SYNONYMS.get(name, ()))
        values[name] = value
    return MappingProxyType(values)


@lru_cache(maxsize=1024)
def _effective_topic(static: BrokerConfig, cluster: Texts, broker: Texts, topic: Texts) -> Mapping[str, Any]:
    if topic:
        values = dict(_effective_topic(static, cluster, broker, ()))
        values.update(_parsed(topic))
        if values["internal.segment.bytes"] is not None:
            values["segment.bytes"] = values["internal.segment.bytes"]
        return MappingProxyType(values)
    defaults = _effective_broker(static, cluster, broker)
    return MappingProxyType({name: _default_of(name, defaults) for name in TOPIC})


def _parsed(topic: Texts) -> Iterable[tuple[str, object]]:
    for name, text in topic:
        try:
            yield name, parse(TOPIC[name], text)
        except (BadValue, KeyError):
            continue


def _default_of(name: str, defaults: Mapping[str, Any]) -> object:
    setting = TOPIC[name]
    given = next((other for other in setting.synonyms if defaults[other] is not None), None)
    if given is None:
        return setting.default
    value = defaults[given]
    factor = next((factor for ending, factor in IN_MS.items() if given.endswith(ending)), 1)
    if factor != 1:
        value *= factor
    return max(value, -1) if name == "retention.ms" else value
