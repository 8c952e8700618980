"""Where consumer groups touch their shard: how their records are loaded, and what holds for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.group.consumer_advance import ASSIGNORS
from ottla.group.consumer_group import ConsumerGroup, ConsumerRules, Terms
from ottla.group.consumer_records import GROUP_EPOCH, KINDS, decode
from ottla.group.records import record_type
from ottla.metadata.feed import MetadataFeed
from ottla.metadata.state import ResourceType
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
        )

    def terms(self, group_id: str) -> Terms:
        """A group's own settings hold within the limits of the broker's."""
        broker = self._settings.broker
        own = self._feed.image.config(ResourceType.GROUP, group_id)
        session_ms = int(own.get("consumer.session.timeout.ms", broker("group.consumer.session.timeout.ms")))
        beat_ms = int(own.get("consumer.heartbeat.interval.ms", broker("group.consumer.heartbeat.interval.ms")))
        return Terms(
            session_timeout_ms=_within(
                session_ms,
                least=broker("group.consumer.min.session.timeout.ms"),
                most=broker("group.consumer.max.session.timeout.ms"),
            ),
            heartbeat_interval_ms=_within(
                beat_ms,
                least=broker("group.consumer.min.heartbeat.interval.ms"),
                most=broker("group.consumer.max.heartbeat.interval.ms"),
            ),
            members_max=broker("group.consumer.max.size"),
            assignors=assignor_names(broker("group.consumer.assignors")),
        )


def assignor_names(listed: Sequence[str]) -> tuple[str, ...]:
    """Kafka's setting also takes the names of its own Java classes; other classes cannot be had here."""
    short = [name.rpartition(".")[2].removesuffix("Assignor").lower() for name in listed]
    return tuple(name for name in short if name in ASSIGNORS) or tuple(ASSIGNORS)


def _within(value: int, *, least: int, most: int) -> int:
    return max(least, min(value, most))


@record_type(*sorted(KINDS))
def replay_consumer_record(state: Any, key: memoryview, value: memoryview | None) -> None:
    entry = decode(bytes(key), None if value is None else bytes(value))
    if entry is None:
        return
    group_id = entry.key[0]
    group = state.groups.get(group_id)
    if entry.kind == GROUP_EPOCH and entry.value is None:
        state.forget_group(group_id, ConsumerGroup.type)
        return
    if not isinstance(group, ConsumerGroup):
        if entry.value is None:
            return
        group = state.groups[group_id] = state.new_consumer_group(group_id)
    group.log.apply(entry)
    group.written = state.replayed_offset
