"""Where share groups touch their shard: how their records are loaded, and what holds for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ottla.config.group import group_setting
from ottla.group.contract.records import record_type
from ottla.group.heartbeat_loading import replay_entry
from ottla.group.share.group import ShareGroup, ShareRules, ShareTerms
from ottla.group.share.records import GROUP_EPOCH, KINDS, decode
from ottla.metadata.model.state import ResourceType
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings

if TYPE_CHECKING:
    from ottla.group.shard import Shard

__all__ = ["ShareSettings", "replay_share_record"]


class ShareSettings:
    """The rules of share groups, out of this broker's settings as they are now."""

    def __init__(self, settings: LiveSettings, feed: MetadataFeed) -> None:
        self._settings = settings
        self._feed = feed

    def rules(self, shard: "Shard") -> ShareRules:
        return ShareRules(image=lambda: self._feed.image, terms=self.terms, adopt=shard.adopt)

    def terms(self, group_id: str) -> ShareTerms:
        own, broker = self._feed.image.config(ResourceType.GROUP, group_id), self._settings.broker
        return ShareTerms(
            session_timeout_ms=group_setting("share.session.timeout.ms", own, broker),
            heartbeat_interval_ms=group_setting("share.heartbeat.interval.ms", own, broker),
            members_max=broker("group.share.max.size"),
            assignor=assignor_name(broker("group.share.assignors")),
        )


def assignor_name(listed: Sequence[str]) -> str:
    """There is only one; Kafka's setting also takes the name of its own Java class."""
    name = (listed or ("simple",))[0].rpartition(".")[2]
    return name.removesuffix("Assignor").lower()


@record_type(*sorted(KINDS))
def replay_share_record(state: Any, key: memoryview, value: memoryview | None) -> None:
    entry = decode(bytes(key), None if value is None else bytes(value))
    replay_entry(state, entry, ShareGroup, state.new_share_group, group_epoch=GROUP_EPOCH)
