"""Settings of a group, within the limits of the broker's settings. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ottla.config.describe import ConfigEntry, Source, Synonym
from ottla.config.durations import duration_ms
from ottla.config.rules import Rule, one_of
from ottla.config.setting import Type
from ottla.config.table import BROKER
from ottla.config.values import BadValue, parse, render

__all__ = ["GROUP_SETTINGS", "check_group_setting", "describe_group", "group_setting"]

Broker = Callable[[str], Any]


class Limits(NamedTuple):
    """The broker's settings with the default, the minimum and the maximum."""

    default: str
    least: str
    most: str


class Words(NamedTuple):
    """A text setting that brokers do not have."""

    default: str
    valid: Rule
    doc: str


class OffsetReset:
    """The start offset of a share group without offsets."""

    def problem(self, value: object) -> str | None:
        text = str(value)
        kind, _, duration = text.partition(":")
        if text in ("earliest", "latest") or (kind == "by_duration" and self._is_past(duration)):
            return None
        return (
            f"Invalid value `{text}` for configuration share.auto.offset.reset. The value must be either 'earliest', "
            "'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )

    @staticmethod
    def _is_past(duration: str) -> bool:
        try:
            return duration_ms(duration) >= 0
        except ValueError:
            return False


def _limits(kind: str, what: str) -> Limits:
    return Limits(f"group.{kind}.{what}", f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")


GROUP_SETTINGS: Mapping[str, Limits | Words] = {
    "consumer.session.timeout.ms": _limits("consumer", "session.timeout.ms"),
    "consumer.heartbeat.interval.ms": _limits("consumer", "heartbeat.interval.ms"),
    "share.session.timeout.ms": _limits("share", "session.timeout.ms"),
    "share.heartbeat.interval.ms": _limits("share", "heartbeat.interval.ms"),
    "share.record.lock.duration.ms": _limits("share", "record.lock.duration.ms"),
    "share.auto.offset.reset": Words(
        "latest", OffsetReset(), "Where a share group begins that has no offsets: earliest, latest, by_duration:PT1H."
    ),
    "share.isolation.level": Words(
        "read_uncommitted",
        one_of("read_committed", "read_uncommitted"),
        "Whether members of a share group see records of transactions that are open or aborted.",
    ),
}


def group_setting(name: str, own: Mapping[str, str], broker: Broker) -> Any:
    """The effective settings of a group with these settings of its own."""
    setting, text = GROUP_SETTINGS[name], own.get(name)
    if isinstance(setting, Words):
        return setting.default if text is None else text.strip()
    if text is None:
        return broker(setting.default)
    return max(broker(setting.least), min(int(text), broker(setting.most)))


def check_group_setting(name: str, text: str, broker: Broker) -> str | None:
    """None if the value is allowed, otherwise the message for the client."""
    setting = GROUP_SETTINGS.get(name)
    if setting is None:
        return f"Unknown group config name: {name}"
    if isinstance(setting, Words):
        problem = setting.valid.problem(text.strip())
        return None if problem is None else str(BadValue(name, text.strip(), problem))
    try:
        value: Any = parse(BROKER[setting.default], text)
    except BadValue as refusal:
        return str(refusal).replace(setting.default, name)
    if value < broker(setting.least):
        return f"{name} must be greater than or equal to {setting.least}"
    if value > broker(setting.most):
        return f"{name} must be less than or equal to {setting.most}"
    return None


def describe_group(own: Mapping[str, str], broker: Broker) -> list[ConfigEntry]:
    return [_entry(name, own.get(name), broker) for name in GROUP_SETTINGS]


def _entry(name: str, own: str | None, broker: Broker) -> ConfigEntry:
    """Kafka names the group's setting also where the broker's gives the value."""
    setting = GROUP_SETTINGS[name]
    if isinstance(setting, Words):
        default, kind, doc = setting.default, Type.STRING, setting.doc
    else:
        known = BROKER[setting.default]
        default, kind, doc = render(broker(setting.default)), known.type, known.doc
    synonym = Synonym(name, default, Source.DEFAULT) if own is None else Synonym(name, own, Source.GROUP)
    return ConfigEntry(
        name=name,
        value=synonym.value,
        source=synonym.source,
        read_only=False,
        sensitive=False,
        type=kind,
        documentation=doc,
        synonyms=[synonym],
    )
