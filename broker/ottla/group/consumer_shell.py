"""Where consumer groups touch their shard: how their records are loaded, and what holds for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.config.group import group_setting
from ottla.group.consumer.advance import ASSIGNORS
from ottla.group.consumer.group import ConsumerGroup, ConsumerRules, Terms
from ottla.group.consumer.records import GROUP_EPOCH, KINDS, decode
from ottla.group.contract.records import record_type
from ottla.group.heartbeat_loading import replay_entry
from ottla.group.regex_resolving import RegexResolver
from ottla.metadata.model.state import ResourceType
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings
from ottla.system import System

if TYPE_CHECKING:
    from ottla.group.shard import Shard

__all__ = ["ConsumerSettings", "replay_consumer_record"]


class ConsumerSettings:
    """The rules of consumer groups, out of this broker's settings as they are now."""

    def __init__(self, settings: LiveSettings, system: System, feed: MetadataFeed) -> None:
        self._settings = settings
        self._system = system
        self._feed = feed
        self.regexes = RegexResolver(system.threads, lambda: feed.image)

    def rules(self, shard: "Shard") -> ConsumerRules:
        return ConsumerRules(
            new_id=lambda: str(self._system.new_uuid()),
            wall_ms=self._system.clock.wall_ms,
            image=lambda: self._feed.image,
            terms=self.terms,
            policy=lambda: str(self._settings.broker("group.consumer.migration.policy")).upper(),
            classic_members_max=lambda: int(self._settings.broker("group.max.size")),
            new_classic_group=shard.new_classic_group,
            adopt=shard.adopt,
            matching=self.regexes.expressions,
        )

    def terms(self, group_id: str) -> Terms:
        """A group's own settings hold within the limits of the broker's."""
        own, broker = self._feed.image.config(ResourceType.GROUP, group_id), self._settings.broker
        return Terms(
            session_timeout_ms=group_setting("consumer.session.timeout.ms", own, broker),
            heartbeat_interval_ms=group_setting("consumer.heartbeat.interval.ms", own, broker),
            members_max=broker("group.consumer.max.size"),
            assignors=assignor_names(broker("group.consumer.assignors")),
        )


def assignor_names(listed: Sequence[str]) -> tuple[str, ...]:
    """Kafka's setting also takes the names of its own Java classes; other classes cannot be had here."""
    short = [name.rpartition(".")[2].removesuffix("Assignor").lower() for name in listed]
    return tuple(name for name in short if name in ASSIGNORS) or tuple(ASSIGNORS)


@record_type(*sorted(KINDS))
def replay_consumer_record(state: Any, key: memoryview, value: memoryview | None) -> None:
    entry = decode(bytes(key), None if value is None else bytes(value))
    replay_entry(state, entry, ConsumerGroup, state.new_consumer_group, group_epoch=GROUP_EPOCH)
