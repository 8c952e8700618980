"""The groups that this broker coordinates: a shard for every partition of the offsets topic that it leads."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence

from ottla.coordination.coordinator import Coordinator, Surroundings
from ottla.coordination.core.partitioning import partition_of
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.group.classic.group import Rules
from ottla.group.consumer_shell import ConsumerSettings
from ottla.group.loading import GroupLoading
from ottla.group.member_memory import MemberMemory
from ottla.group.offsets_topic import OFFSETS_TOPIC, OffsetsTopic
from ottla.group.regex_resolving import RegexResolver
from ottla.group.shard import Found, Shard
from ottla.group.share_keeping import StateKeeper
from ottla.group.share_shell import ShareSettings
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.replica.partition import Partition
from ottla.share.core.messages import Persister
from ottla.wire.markers import Marker
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["GroupCoordinator"]

log = logging.getLogger("ottla.group")


class GroupCoordinator(Coordinator[Shard]):
    """A group without a name may keep offsets, as it always could; only members need a name."""

    def __init__(self, around: Surroundings, *, persister: Persister) -> None:
        topic = OffsetsTopic(config=around.config, settings=around.settings, controller=around.controller)
        super().__init__(topic, around)
        self._consumers = ConsumerSettings(around.settings, around.system, around.feed)
        self._shares = ShareSettings(around.settings, around.feed)
        self.memory = MemberMemory(
            around.config["ottla.group.members.bytes.max"],
            groups=lambda: (group for shard in self._ready() for group in shard.groups.values()),
            clock=around.system.clock,
        )
        self.states = StateKeeper(persister, image=lambda: self._feed.image, keep=self._keep)
        self._removing = asyncio.Lock()  # one slice per turn of the loop, whatever is removed and why

    # looking up

    @property
    def regexes(self) -> RegexResolver:
        return self._consumers.regexes

    def shard_of(self, group_id: str) -> Shard:
        """Also KafkaError: INVALID_GROUP_ID."""
        if is_too_long(group_id):
            raise KafkaError(Code.invalid_group_id, f"a group id has at most {TEXT_BYTES_MAX} bytes")
        return super().shard_of(group_id)

    def shard_for_members(self, group_id: str) -> Shard:
        """As `shard_of`, for requests of members."""
        if not group_id:
            raise KafkaError(Code.invalid_group_id, "members need a group.id")
        return self.shard_of(group_id)

    async def partition_for(self, group_id: str) -> tuple[str, int]:
        """The partition of the offsets topic that keeps this group, on whichever broker."""
        await self.leader_of(group_id)
        topic = self._feed.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise KafkaError(Code.coordinator_not_available)
        return OFFSETS_TOPIC, partition_of(group_id, len(topic.partitions))

    # shards

    def _new_shard(self, partition: Partition) -> Shard:
        return Shard(
            partition,
            clock=self._system.clock,
            rules=self._rules(),
            write_rules=self._write_rules(),
            consumer_rules=self._consumers.rules,
            share_rules=self._shares.rules,
        )

    def _loading(self, shard: Shard) -> GroupLoading:
        return GroupLoading(shard, read_bytes_max=self._settings.broker("offsets.load.buffer.size"))

    def _rules(self) -> Rules:
        return Rules(
            new_id=lambda: str(self._system.new_uuid()),
            wall_ms=self._system.clock.wall_ms,
            initial_delay_ms=self._settings.broker("group.initial.rebalance.delay.ms"),
            members_max=self._settings.broker("group.max.size"),
        )

    def _write_rules(self) -> WriteRules:
        return WriteRules(
            codec=self._settings.broker("offsets.topic.compression.codec"),
            commit_s_max=self._settings.broker("offsets.commit.timeout.ms") / 1000,
        )

    # transactions

    def marked(self, partition: Partition, marker: Marker, offset: int) -> None:
        """A marker stands in the log of a partition: offsets that a transaction brought are decided by it."""
        shard = self._shards.get(partition.index) if partition.topic == OFFSETS_TOPIC else None
        if shard is not None and shard.partition is partition:
            shard.decided(marker.producer_id, commit=marker.commit, offset=offset)

    # upkeep

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        super()._image_moved(old, new, changes)
        if changes.deleted:
            self._topics_deleted({name for name in changes.deleted.values() if name not in new.topics})

    def _topics_deleted(self, topics: set[str]) -> None:
        for shard in self._ready():
            for group in shard.share_groups:
                self.states.look(shard, group)
        found = [(shard, offsets) for shard in self._ready() if (offsets := shard.offsets_of(topics))]
        if found:
            self._keep(asyncio.ensure_future(self._delete_offsets(found)))

    async def _delete_offsets(self, found: Sequence[tuple[Shard, Sequence[Found]]]) -> None:
        async with self._removing:
            for shard, offsets in found:
                try:
                    await shard.delete_unchanged(offsets)
                except KafkaError as error:
                    log.warning("%s: offsets of deleted topics stay: %s", shard, error)

    def _upkeep(self) -> Iterable[Coroutine[None, None, None]]:
        yield self._expire_every("offsets.retention.check.interval.ms", self._expire, "offsets")

    async def _expire(self, shard: Shard) -> int:
        """Share groups are looked at as well: what was left half done before this broker led is done then."""
        for group in shard.share_groups:
            self.states.look(shard, group)
        retention_ms = self._settings.broker("offsets.retention.minutes") * 60_000
        async with self._removing:
            return await shard.expire(now_ms=self._system.clock.wall_ms(), retention_ms=retention_ms)
