"""Checks the value of a setting. Returns Kafka's sentence about what is wrong, or None. Pure."""

import re

from ottla.config.endpoints import BadEndpoint, parse_listeners
from ottla.config.setting import Mode, Setting
from ottla.config.table import BROKER, TOPIC
from ottla.config.values import BadValue, parse

__all__ = ["broker_setting_of", "check_broker_setting", "check_topic_setting", "may_change"]

# listener.name.<listener>.[<mechanism>.]<setting> gives a setting to one listener only.
LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]*\.(.*)")
FOR_ONE_MECHANISM = (
    "sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class", "sasl.server.callback.handler.class",
    "connections.max.reauth.ms",
)  # fmt: skip
CLUSTER_WIDE_OF_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")
# All others of a listener are what its file says: they decide who is let in, or name files of the broker.
CHANGED_FOR_LISTENERS = frozenset({
    *CLUSTER_WIDE_OF_LISTENERS, "sasl.jaas.config", "connections.max.reauth.ms", "ssl.key.password",
    *(f"ssl.keystore.{part}" for part in ("type", "location", "password", "key", "certificate.chain")),
    *(f"ssl.truststore.{part}" for part in ("type", "location", "password", "certificates")),
})  # fmt: skip
OVERRIDES = "max.connections.per.ip.overrides"


def check_topic_setting(name: str, text: str) -> str | None:
    setting = TOPIC.get(name)
    if setting is None:
        return f"Unknown topic config name: {name}"
    problem = _problem(setting, text)
    if problem is None and name == "remote.storage.enable" and text.strip().lower() == "true":
        return (
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    return problem


def check_broker_setting(name: str, text: str, *, dynamic: bool = True, per_broker: bool = True) -> str | None:
    """`dynamic`: a change at run time, for one broker (`per_broker`) or for all; otherwise a line of a file.

    Unknown names are accepted, as in Kafka, where a plugin may read them.
    """
    setting = broker_setting_of(name)
    if setting is None:
        return None
    if dynamic and (refusal := _cannot_change(setting, name, per_broker=per_broker)):
        return refusal
    return _problem(setting, text) or (_whole(setting, text, with_hint=not dynamic) if per_broker else None)


def may_change(name: str, *, per_broker: bool) -> bool:
    """Whether a listener's setting may be changed while brokers run, for one of them or for all. True for other names:
    those that may not be were never taken."""
    setting = broker_setting_of(name)
    if setting is None or setting.name == name:
        return True
    return _cannot_change(setting, name, per_broker=per_broker) is None


def broker_setting_of(name: str) -> Setting | None:
    """The setting of a name, with or without a listener prefix."""
    if setting := BROKER.get(name):
        return setting
    if match := LISTENER_PREFIX.fullmatch(name):
        base = next((end for end in FOR_ONE_MECHANISM if match[1].endswith(end)), match[1])
        return BROKER.get(base)
    return None


def _cannot_change(setting: Setting, name: str, *, per_broker: bool) -> str | None:
    for_listener = name != setting.name
    if setting.name not in CHANGED_FOR_LISTENERS if for_listener else setting.mode is Mode.READ_ONLY:
        return f"Cannot update these configs dynamically: Set({name})"
    if setting.name.startswith("ssl.") and not for_listener:
        return (
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            f"HashSet({name})"
        )
    one_broker_only = setting.name not in CLUSTER_WIDE_OF_LISTENERS if for_listener else setting.mode is Mode.PER_BROKER
    if one_broker_only and not per_broker:
        return f"Cannot update these configs at default cluster level, broker id must be specified: Set({name})"
    return None


def _problem(setting: Setting, text: str) -> str | None:
    try:
        parse(setting, text)
    except BadValue as refusal:
        return str(refusal)
    return None


def _whole(setting: Setting, text: str, *, with_hint: bool) -> str | None:
    """Rules that Kafka checks on the whole configuration of a broker. `with_hint`: also say what to do."""
    if setting.name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours") and int(text) == 0:
        return "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    if setting.name == "log.roll.ms" and int(text) < 1:
        return "requirement failed: log.roll.ms must be greater than or equal to 1"
    if setting.name == "log.roll.jitter.ms" and int(text) < 0:
        return "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"
    if setting.name == OVERRIDES:
        return _address_counts(text)
    if setting.name in ("listeners", "advertised.listeners"):
        try:
            parse_listeners(text)
        except BadEndpoint as refusal:
            return f"{refusal}{refusal.hint if with_hint else ''}"
    return None


def _address_counts(text: str) -> str | None:
    for pair in filter(None, (part.strip() for part in text.split(","))):
        address, _, count = pair.rpartition(":")
        if not address or not count.strip().isdecimal():
            return f"Error parsing configuration property '{OVERRIDES}': {pair!r} is not address:count"
    return None
