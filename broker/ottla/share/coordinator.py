"""The share coordinator: a shard for every partition of the state topic that this broker leads.

It implements Persister for the keys of its shards; other keys are refused with NOT_COORDINATOR.
"""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence

from ottla.coordination.coordinator import Coordinator, Surroundings
from ottla.coordination.internal_topic import InternalTopic
from ottla.coordination.loading import Loading
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.replica.partition import Partition
from ottla.share.core.messages import ShareKey, ShareState, StateBatch, Summary
from ottla.share.shard import ShareShard

__all__ = ["SHARE_STATE_TOPIC", "ShareCoordinator"]

log = logging.getLogger("ottla.share")

COLD_INTERVAL = "share.coordinator.cold.partition.snapshot.interval.ms"
PRUNE_INTERVAL = "share.coordinator.state.topic.prune.interval.ms"
UPDATES_PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"
SHARE_STATE_TOPIC = "__share_group_state"


class ShareStateTopic(InternalTopic):
    """No retention by age or size and no compaction: the coordinator deletes records that newer snapshots replace."""

    name = SHARE_STATE_TOPIC
    partitions_setting = "share.coordinator.state.topic.num.partitions"
    factor_setting = "share.coordinator.state.topic.replication.factor"

    def _configs(self, factor: int) -> list[tuple[str, str]]:
        return [
            ("cleanup.policy", "delete"),
            ("compression.type", "producer"),
            ("min.insync.replicas", str(self._limited("share.coordinator.state.topic.min.isr", most=factor))),
            ("retention.bytes", "-1"),  # Kafka uses the brokers' default here, and may lose states by it
            ("retention.ms", "-1"),
            ("segment.bytes", str(self._settings.broker("share.coordinator.state.topic.segment.bytes"))),
        ]


class ShareCoordinator(Coordinator[ShareShard]):
    def __init__(self, around: Surroundings) -> None:
        topic = ShareStateTopic(config=around.config, settings=around.settings, controller=around.controller)
        super().__init__(topic, around)

    # questions

    async def initialize(self, key: ShareKey, *, state_epoch: int, start: int) -> None:
        await self._shard_of_known(key).initialize(key, state_epoch=state_epoch, start=start)

    async def read(self, key: ShareKey, *, leader_epoch: int) -> ShareState:
        return await self._shard_of_known(key).read(key, leader_epoch=leader_epoch)

    async def write(
        self, key: ShareKey, *, state_epoch: int, leader_epoch: int, start: int, batches: Sequence[StateBatch]
    ) -> None:
        shard = self._shard_of_known(key)
        await shard.write(key, state_epoch=state_epoch, leader_epoch=leader_epoch, start=start, batches=batches)

    async def delete(self, key: ShareKey) -> None:
        """Also allowed for a deleted topic."""
        await self.shard_of(str(key)).delete(key)

    async def summary(self, key: ShareKey) -> Summary:
        return await self.shard_of(str(key)).summary(key)

    def _shard_of_known(self, key: ShareKey) -> ShareShard:
        """The shard, if the topic exists: nothing would ever delete a state that is created for a deleted topic."""
        shard = self.shard_of(str(key))
        topic = self._feed.image.topics_by_id.get(key.topic_id)
        if topic is None or not 0 <= key.partition < len(topic.partitions):
            raise KafkaError(Code.unknown_topic_or_partition, f"this broker does not know the topic of {key}")
        return shard

    # shards

    def _new_shard(self, partition: Partition) -> ShareShard:
        write_rules = WriteRules(
            codec=self._settings.broker("share.coordinator.state.topic.compression.codec"),
            commit_s_max=self._settings.broker("share.coordinator.write.timeout.ms") / 1000,
        )
        return ShareShard(
            partition,
            clock=self._system.clock,
            write_rules=write_rules,
            updates_per_snapshot=lambda: int(self._settings.broker(UPDATES_PER_SNAPSHOT)),
        )

    def _loading(self, shard: ShareShard) -> Loading:
        return Loading(shard, read_bytes_max=self._settings.broker("share.coordinator.load.buffer.size"))

    # upkeep

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        super()._image_moved(old, new, changes)
        if changes.deleted:
            for shard in self._ready():
                try:
                    shard.topics_deleted(changes.deleted.keys())
                except KafkaError as error:
                    log.warning("%s: states of deleted topics could not be removed yet: %s", shard, error)

    def _upkeep(self) -> Iterable[Coroutine[None, None, None]]:
        yield self._do_every(COLD_INTERVAL, self._snapshot_cold, "snapshots of quiet share-partitions written")
        yield self._do_every(PRUNE_INTERVAL, self._prune, "records deleted that newer ones replace")

    async def _do_every(self, setting: str, work: Callable[[ShareShard], Awaitable[int]], what: str) -> None:
        while True:
            await self._pause(setting)
            for shard in self._ready():
                try:
                    count = await work(shard)
                except KafkaError as error:
                    log.warning("%s: no %s for now: %s", shard, what, error)
                else:
                    log.log(logging.INFO if count else logging.DEBUG, "%s: %d %s", shard, count, what)

    async def _snapshot_cold(self, shard: ShareShard) -> int:
        age_ms = self._settings.broker(COLD_INTERVAL)
        return await shard.snapshot_cold(now_ms=self._system.clock.wall_ms(), age_ms=age_ms)

    async def _prune(self, shard: ShareShard) -> int:
        shard.drop_orphans(lambda topic_id: topic_id in self._feed.image.topics_by_id)
        return await shard.prune()
