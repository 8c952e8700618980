"""The current rules of consumer and share groups, from the settings of this broker and of the group."""

from collections.abc import Sequence

from ottla.config.group import group_setting
from ottla.group.consumer.membership import ConsumerRules, Terms
from ottla.group.consumer.targets import ASSIGNORS
from ottla.group.resolving import RegexResolver
from ottla.group.shard import Shard
from ottla.group.share.group import ShareRules, ShareTerms
from ottla.metadata.model.state import ResourceType
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings
from ottla.system import System

__all__ = ["ConsumerSettings", "ShareGroupSettings"]


class ConsumerSettings:
    def __init__(self, settings: LiveSettings, system: System, feed: MetadataFeed) -> None:
        self._settings = settings
        self._system = system
        self._feed = feed
        self.regexes = RegexResolver(
            system.threads, lambda: feed.image, is_open=not settings.broker("authorizer.class.name").strip()
        )

    def rules(self, shard: Shard) -> ConsumerRules:
        return ConsumerRules(
            new_id=lambda: str(self._system.new_uuid()),
            wall_ms=self._system.clock.wall_ms,
            image=lambda: self._feed.image,
            terms=self.terms,
            policy=lambda: str(self._settings.broker("group.consumer.migration.policy")).upper(),
            classic_members_max=lambda: int(self._settings.broker("group.max.size")),
            new_classic_group=shard.new_classic_group,
            adopt=shard.adopt,
            matching=self.regexes.visible,
        )

    def terms(self, group_id: str) -> Terms:
        """A group's own settings apply within the limits of the broker's."""
        own, broker = self._feed.image.config(ResourceType.GROUP, group_id), self._settings.broker
        return Terms(
            session_timeout_ms=group_setting("consumer.session.timeout.ms", own, broker),
            heartbeat_interval_ms=group_setting("consumer.heartbeat.interval.ms", own, broker),
            members_max=broker("group.consumer.max.size"),
            assignors=assignor_names(broker("group.consumer.assignors")),
        )


def assignor_names(listed: Sequence[str]) -> tuple[str, ...]:
    """Kafka's setting also accepts the names of its own Java classes; other classes do not exist here."""
    short = [short_name(name) for name in listed]
    return tuple(name for name in short if name in ASSIGNORS) or tuple(ASSIGNORS)


class ShareGroupSettings:
    def __init__(self, settings: LiveSettings, feed: MetadataFeed) -> None:
        self._settings = settings
        self._feed = feed

    def rules(self, shard: Shard) -> ShareRules:
        return ShareRules(image=lambda: self._feed.image, terms=self.terms, adopt=shard.adopt)

    def terms(self, group_id: str) -> ShareTerms:
        own, broker = self._feed.image.config(ResourceType.GROUP, group_id), self._settings.broker
        return ShareTerms(
            session_timeout_ms=group_setting("share.session.timeout.ms", own, broker),
            heartbeat_interval_ms=group_setting("share.heartbeat.interval.ms", own, broker),
            members_max=broker("group.share.max.size"),
            assignor=short_name((broker("group.share.assignors") or ("simple",))[0]),
        )


def short_name(assignor: str) -> str:
    """Accepts names and Kafka's own Java classes."""
    return assignor.rpartition(".")[2].removesuffix("Assignor").lower()
