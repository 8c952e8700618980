"""The groups that this broker coordinates: a shard for every partition of the offsets topic that it leads."""

import asyncio
import logging
from collections.abc import Mapping

from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.group.classic import Rules
from ottla.group.consumer_shell import ConsumerSettings
from ottla.group.loading import GroupLoading
from ottla.group.offsets_topic import OFFSETS_TOPIC, OffsetsTopic
from ottla.group.partitioning import partition_of
from ottla.group.shard import Shard
from ottla.group.writing import WriteRules
from ottla.metadata.active import Controller
from ottla.metadata.changes import Changes
from ottla.metadata.feed import MetadataFeed
from ottla.metadata.image import Image
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.replica.settings import LiveSettings
from ottla.system import System
from ottla.wire.markers import Marker

__all__ = ["GroupCoordinator", "initial_delay_ms"]

log = logging.getLogger("ottla.group")

NOBODY = -1
INITIAL_DELAY = "group.initial.rebalance.delay.ms"
UNSET_INITIAL_DELAY_MS = 1000
CHECK_SECONDS_MAX = 365 * 86_400.0


class GroupCoordinator:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        settings: LiveSettings,
        system: System,
        feed: MetadataFeed,
        replicas: ReplicaHost,
        controller: Controller,
    ) -> None:
        self._config = config
        self._settings = settings
        self._system = system
        self._feed = feed
        self._replicas = replicas
        self._topic = OffsetsTopic(config=config, settings=settings, controller=controller)
        self._consumers = ConsumerSettings(settings, system, feed)
        self._shards: dict[int, Shard] = {}
        self._partitions = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False
        self._stopped = False
        self.skipped_records = 0
        """Of all that were loaded: those that could not be read."""

    # looking up

    @property
    def shards(self) -> list[Shard]:
        return list(self._shards.values())

    def shard_of(self, group_id: str) -> Shard:
        """Who keeps this group. KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

        A group without a name may keep offsets, as it always could; only members need a name.
        """
        shard = self._shards.get(partition_of(group_id, self._partitions)) if self._partitions else None
        if shard is None or shard.loading or not shard.leads:
            raise self._absence(group_id)
        return shard

    def shard_for_members(self, group_id: str) -> Shard:
        """The same for requests of members; also INVALID_GROUP_ID."""
        if not group_id:
            raise KafkaError(Code.invalid_group_id, "members need a group.id")
        return self.shard_of(group_id)

    def _absence(self, group_id: str) -> KafkaError:
        """A broker that will be the coordinator in a moment says so: clients then need not look for it again."""
        will_lead = self._leader(group_id) == self._replicas.node_id
        return KafkaError(Code.coordinator_load_in_progress if will_lead else Code.not_coordinator)

    async def leader_of(self, group_id: str) -> int:
        """The broker that coordinates this group, or -1 while there is none. The topic is made if it must be."""
        if OFFSETS_TOPIC not in self._feed.image.topics:
            await self._topic.make(self._feed.image)
        while self._looking is not None:
            await asyncio.wait([self._looking])  # so that a member need not come twice
        return self._leader(group_id)

    async def partition_for(self, group_id: str) -> tuple[str, int]:
        """The partition of the offsets topic that keeps this group, on whichever broker."""
        await self.leader_of(group_id)
        topic = self._feed.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise KafkaError(Code.coordinator_not_available)
        return OFFSETS_TOPIC, partition_of(group_id, len(topic.partitions))

    def _leader(self, group_id: str) -> int:
        topic = self._feed.image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return NOBODY
        return topic.partitions[partition_of(group_id, len(topic.partitions))].leader

    # following the image

    def start(self) -> None:
        self._feed.subscribe(self._image_moved)
        self._look()
        self._keep(asyncio.ensure_future(self._expire()))

    async def stop(self) -> None:
        self._stopped = True
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()
        tasks = [*self._tasks, *([self._looking] if self._looking else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        topic = new.topics.get(OFFSETS_TOPIC)
        if (topic is not None and topic.id in changes.partitions) or OFFSETS_TOPIC in changes.deleted.values():
            self._look()
        if changes.deleted:
            self._topics_deleted({name for name in changes.deleted.values() if name not in new.topics})

    def _look(self) -> None:
        """Once the replicas have taken the roles that the image gives."""
        self._look_again = True
        if self._looking is None and not self._stopped:
            self._looking = asyncio.ensure_future(self._follow_roles())

    async def _follow_roles(self) -> None:
        try:
            while self._look_again:
                self._look_again = False
                await self._replicas.settled()
                self._reconcile()
        finally:
            self._looking = None

    def _reconcile(self) -> None:
        topic = self._replicas.image.topics.get(OFFSETS_TOPIC)
        self._partitions = len(topic.partitions) if topic is not None else 0
        for index, shard in list(self._shards.items()):
            if not shard.leads:
                del self._shards[index]
                shard.unload()
                if shard.groups:
                    log.info("%s: another broker coordinates its %d groups", shard, len(shard.groups))
        for index in range(self._partitions):
            partition = self._replicas.find(OFFSETS_TOPIC, index)
            if partition is not None and partition.is_leader and index not in self._shards:
                self._begin(index, partition)

    def _begin(self, index: int, partition: Partition) -> None:
        shard = self._shards[index] = Shard(
            partition,
            clock=self._system.clock,
            rules=self._rules(),
            write_rules=self._write_rules(),
            consumer_rules=self._consumers.rules,
        )
        if partition.log.end_offset == partition.log.start_offset:
            shard.loaded()
        else:
            self._keep(asyncio.ensure_future(self._load(index, shard)))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self, index: int, shard: Shard) -> None:
        loading = GroupLoading(shard, read_bytes_max=self._settings.broker("offsets.load.buffer.size"))
        begun = self._system.clock.monotonic()
        try:
            complete = await loading.run()
        except KafkaError as error:
            log.error("%s cannot be loaded: %s", shard, error)
            return
        self.skipped_records += loading.skipped
        if complete and self._shards.get(index) is shard:
            shard.loaded()
            took_ms = (self._system.clock.monotonic() - begun) * 1000
            log.info(
                "%s: %d groups loaded from %d records in %.0f ms", shard, len(shard.groups), loading.records, took_ms
            )

    def _rules(self) -> Rules:
        return Rules(
            new_id=lambda: str(self._system.new_uuid()),
            wall_ms=self._system.clock.wall_ms,
            initial_delay_ms=initial_delay_ms(self._settings.broker(INITIAL_DELAY), self._config.explicit),
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

    def _ready(self) -> list[Shard]:
        return [shard for shard in self._shards.values() if shard.leads and not shard.loading]

    def _topics_deleted(self, topics: set[str]) -> None:
        for shard in self._ready():
            try:
                shard.topics_deleted(topics)
            except KafkaError as error:
                log.warning("%s: offsets of deleted topics stay: %s", shard, error)

    async def _expire(self) -> None:
        while True:
            seconds = self._settings.broker("offsets.retention.check.interval.ms") / 1000
            await asyncio.sleep(min(seconds, CHECK_SECONDS_MAX))
            retention_ms = self._settings.broker("offsets.retention.minutes") * 60_000
            for shard in self._ready():
                self._expire_one(shard, retention_ms)
                await asyncio.sleep(0)

    def _expire_one(self, shard: Shard, retention_ms: int) -> None:
        try:
            count = shard.expire(now_ms=self._system.clock.wall_ms(), retention_ms=retention_ms)
        except KafkaError as error:
            log.warning("%s: expired offsets stay for now: %s", shard, error)
        else:
            if count:
                log.info("%s: %d offsets expired", shard, count)


def initial_delay_ms(wanted_ms: int, explicit: Mapping[str, str]) -> int:
    """What was set is meant, as in Kafka. Otherwise a shorter one, put off likewise while members keep coming."""
    return wanted_ms if INITIAL_DELAY in explicit else min(wanted_ms, UNSET_INITIAL_DELAY_MS)
