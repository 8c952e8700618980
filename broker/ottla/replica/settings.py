"""The current settings: those the node started with, overridden by dynamic ones from the metadata log."""

from collections.abc import Callable, Mapping
from typing import Any

from ottla.config import (
    BrokerConfig,
    ConfigEntry,
    describe_broker,
    describe_defaults,
    describe_group,
    describe_topic,
    effective_broker,
    effective_topic,
    without_effect,
)
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ResourceType
from ottla.storage.core.settings import LogSettings

__all__ = ["FLEET_WIDE", "LiveSettings"]

FLEET_WIDE = ""


class LiveSettings:
    def __init__(self, config: BrokerConfig, node_id: int, image: Callable[[], Image]) -> None:
        self._config = config
        self._name = str(node_id)
        self._image = image
        self._typed: dict[int, tuple[Mapping[str, Any], LogSettings]] = {}

    @property
    def _fleet(self) -> Mapping[str, str]:
        return self._image().config(ResourceType.BROKER, FLEET_WIDE)

    @property
    def _own(self) -> Mapping[str, str]:
        return self._image().config(ResourceType.BROKER, self._name)

    def broker(self, name: str) -> Any:
        return self.broker_values()[name]

    def listener(self, listener: str, name: str) -> Any:
        """What is set for this listener alone, or None."""
        return self.broker_values().get(f"listener.name.{listener.lower()}.{name}")

    def broker_values(self) -> Mapping[str, Any]:
        """All of them, as they are now; those of listeners under their whole names."""
        return effective_broker(self._config, self._fleet, self._own)

    def without_effect(self) -> list[str]:
        """Names of this broker's dynamic settings that are ignored."""
        return without_effect(self._fleet, self._own)

    def topic(self, topic: str) -> Mapping[str, Any]:
        """Typed values of all topic settings, under their names."""
        own = self._image().config(ResourceType.TOPIC, topic)
        return effective_topic(self._config, self._fleet, self._own, own)

    def log(self, topic: str) -> LogSettings:
        """The topic's settings as LogSettings; topics with equal settings share one object."""
        values = self.topic(topic)
        known = self._typed.get(id(values))
        if known is None or known[0] is not values:
            extra = {"producer.id.expiration.ms": self.broker("producer.id.expiration.ms")}
            known = self._typed[id(values)] = (values, LogSettings.of({**values, **extra}))
        return known[1]

    def describe_topic(self, topic: str, overrides: Mapping[str, str] | None = None) -> list[ConfigEntry]:
        own = self._image().config(ResourceType.TOPIC, topic) if overrides is None else overrides
        return describe_topic(self._config, self._fleet, self._own, own)

    def describe_group(self, group: str) -> list[ConfigEntry]:
        return describe_group(self._image().config(ResourceType.GROUP, group), self.broker)

    def describe_broker(self) -> list[ConfigEntry]:
        return describe_broker(self._config, self._fleet, self._own)

    def describe_defaults(self) -> list[ConfigEntry]:
        return describe_defaults(self._config, self._fleet)
