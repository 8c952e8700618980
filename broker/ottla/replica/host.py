"""The partitions of this broker. Follows the metadata image: creates, opens, leads, follows and deletes partitions.

Images are applied on the event loop, in order; disk work is done in threads. `settled()` waits until all images so far
are applied.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from ottla.errors import Code, KafkaError
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import PartitionState, ResourceType, Topic
from ottla.replica.batch_validation import BatchValidation
from ottla.replica.image_queue import ImageQueue
from ottla.replica.isr_changes import Controller
from ottla.replica.leader_stream import LeaderStream
from ottla.replica.lost_replicas import LostReplicas
from ottla.replica.partition import Partition
from ottla.replica.replication import Replication
from ottla.replica.settings import LiveSettings
from ottla.replica.streams import Connect, Stream
from ottla.replica.throttling import Throttles
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.log.log import Log
from ottla.storage.workers.worker import Worker
from ottla.system import System

__all__ = ["ReplicaHost"]

log = logging.getLogger("ottla.replica")

LOGS_AT_ONCE = 200
VISITED_AT_ONCE = 500  # entries of partitions that periodic work looks at per turn of the loop, 1 µs each
PARTITIONS_AT_ONCE = 20  # changed per turn of the loop; a removal renames a folder


class ReplicaHost:
    def __init__(
        self, *, node_id: int, system: System, directories: LogDirectories, settings: LiveSettings, worker: Worker
    ) -> None:
        self.directories = directories
        self.validation = BatchValidation(worker)
        self.node_id = node_id
        self._system = system
        self._settings = settings
        self._image = Image(cluster_id="")
        self._partitions: dict[tuple[str | bytes, int], Partition] = {}
        self.offline: dict[tuple[str, int], uuid.UUID] = {}  # partitions in a failed log dir → their topic's id
        self._lost: LostReplicas | None = None
        self._watermarks: Mapping[tuple[str, int], int] = {}
        self._images = ImageQueue(self._apply)
        self._collected: dict[tuple[str, int], int] | None = None
        self._changed = 0
        self._replication: Replication | None = None
        self._serving: set[Stream] = set()
        self.throttles = Throttles(node_id, settings=settings, image=lambda: self._image)

    # looking up

    @property
    def image(self) -> Image:
        """The image that is applied here."""
        return self._image

    @property
    def cluster_id(self) -> str:
        return self._image.cluster_id

    def __iter__(self) -> Iterator[Partition]:
        return (partition for (topic, _), partition in self._partitions.items() if isinstance(topic, str))

    async def in_slices(self) -> AsyncIterator[Partition]:
        """All of now, but for those that are removed meanwhile. The loop serves others in between."""
        for number, (key, partition) in enumerate(list(self._partitions.items())):
            if isinstance(key[0], str) and self._partitions.get(key) is partition:
                yield partition
            if number % VISITED_AT_ONCE == 0:
                await asyncio.sleep(0)

    def find(self, topic: str | bytes, index: int) -> Partition | None:
        """By the topic's name or its raw id."""
        return self._partitions.get((topic, index))

    def require(self, topic: str | bytes, index: int) -> Partition:
        partition = self._partitions.get((topic, index))
        if partition is None:
            raise self._absence(topic, index)
        return partition

    def _absence(self, topic: str | bytes, index: int) -> KafkaError:
        found = self._topic(topic)
        if found is None:
            by_name = isinstance(topic, str)
            code = Code.unknown_topic_or_partition if by_name else Code.unknown_topic_id
            return KafkaError(code, f"This server does not host topic {topic!r}" if by_name else None)
        if not 0 <= index < len(found.partitions):
            text = f"Topic {found.name} has no partition {index}: it has {len(found.partitions)}"
            return KafkaError(Code.unknown_topic_or_partition, text)
        if (found.name, index) in self.offline:
            return KafkaError(Code.kafka_storage_error, f"{found.name}-{index} is in a log dir that failed")
        return KafkaError(Code.not_leader_or_follower)

    def _topic(self, topic: str | bytes) -> Topic | None:
        if isinstance(topic, str):
            return self._image.topics.get(topic)
        return self._image.topics_by_id.get(uuid.UUID(bytes=topic))

    def leader_of(self, topic: str | bytes, index: int) -> tuple[int, int] | None:
        """(id, epoch) of the leader as this broker knows it."""
        found = self._topic(topic)
        if found is None or not 0 <= index < len(found.partitions):
            return None
        return found.partitions[index].leader, found.partitions[index].leader_epoch

    # following the image

    def start(self, image: Image) -> None:
        """Host the logs found on disk, in the roles that the image gives them."""
        self._watermarks = self.directories.high_watermarks
        self._image = image
        for topic in image.topics.values():
            for state in topic.partitions:
                found = self.directories.logs.get((topic.name, state.index))
                if found is not None and self.node_id in state.replicas:
                    self._host(topic, state, found)
                elif found is not None:
                    self.directories.delete(found)  # it moved to other brokers while this one was down

    async def create_missing(self) -> None:
        """Create logs that the image has and the disk does not: a crash interrupted their creation.

        Queued with the images, so that no log is created twice.
        """
        missing: dict[uuid.UUID, set[int]] = {}
        for topic in self._image.topics.values():
            for state in topic.partitions:
                absent = self.node_id in state.replicas and (topic.name, state.index) not in self._partitions
                if absent and not self._is_offline(topic, state):
                    missing.setdefault(topic.id, set()).add(state.index)
        self.image_moved(self._image, self._image, Changes(partitions=missing))
        await self.settled()

    def _is_offline(self, topic: Topic, state: PartitionState) -> bool:
        """A log that may be in a failed log dir must not be created in another one."""
        offline = len(self.directories.online) < len(self.directories.directories)
        if offline:
            self.offline[topic.name, state.index] = topic.id
        return offline

    def image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        """Subscriber of the metadata feed."""
        self._images.put(new, changes)

    async def settled(self) -> None:
        await self._images.settled()

    async def _apply(self, image: Image, changes: Changes) -> None:
        self._image = image
        self._changed = 0
        await self._delete(changes.deleted)
        new = []
        for topic_id, indexes in changes.partitions.items():
            topic = image.topics_by_id[topic_id]
            for state in (topic.partitions[index] for index in sorted(indexes)):
                key = (topic.name, state.index)
                partition = self._partitions.get(key)
                if self.node_id not in state.replicas:
                    self.offline.pop(key, None)
                    if partition is not None:
                        await self._remove(partition)
                elif partition is not None:
                    # Not while a thread truncates its files: a leader would append before the old end of the file. The
                    # wait is short, because a truncation holds the log only once its target is known.
                    async with partition.log.changing:
                        partition.become(state, isr_size_min=self._isr_size_min(topic.name))
                        self._follow_leader(partition)
                elif key not in self.offline:
                    new.append((topic, state))
                await self._yield_to_loop()
        await self._create(new)
        await self._apply_settings(changes)
        if changes.brokers and self._replication is not None:
            self._replication.brokers_changed()
        self._losses_changed()

    async def _create(self, new: list[tuple[Topic, PartitionState]]) -> None:
        for begin in range(0, len(new), LOGS_AT_ONCE):
            await asyncio.gather(*(self._create_one(*pair) for pair in new[begin : begin + LOGS_AT_ONCE]))

    async def _create_one(self, topic: Topic, state: PartitionState) -> None:
        settings = self._settings.log(topic.name)
        try:
            made = await self.directories.create(topic.name, state.index, topic.id, settings)
        except KafkaError as error:
            log.error("%s-%d cannot be created: %s", topic.name, state.index, error)
            self.offline[topic.name, state.index] = topic.id
        else:
            self._host(topic, state, made)

    def _host(self, topic: Topic, state: PartitionState, found: Log) -> None:
        partition = Partition(
            topic.name,
            state.index,
            found,
            topic_id=topic.id,
            system=self._system,
            node_id=self.node_id,
            high_watermark=self._watermarks.get((topic.name, state.index), 0),
            on_disk_error=self._disk_failed,
            epoch_of=self._epoch_of_active,
            lag_max_s=self._settings.broker("replica.lag.time.max.ms") / 1000,
        )
        partition.become(state, isr_size_min=self._isr_size_min(topic.name))
        self._partitions[topic.name, state.index] = partition
        self._partitions[topic.id.bytes, state.index] = partition
        self._follow_leader(partition)

    def _epoch_of_active(self, broker_id: int) -> int | None:
        broker = self._image.brokers.get(broker_id)
        return broker.epoch if broker is not None and broker.is_active else None

    async def _delete(self, deleted: Mapping[uuid.UUID, str]) -> None:
        if not deleted:
            return
        hosted = [partition for (topic, _), partition in self._partitions.items() if isinstance(topic, bytes)]
        for partition in [partition for partition in hosted if partition.topic_id in deleted]:
            await self._remove(partition)
            await self._yield_to_loop()
        names = set(deleted.values())
        self.offline = {key: lost for key, lost in self.offline.items() if key[0] not in names}

    async def _yield_to_loop(self) -> None:
        """Called after each partition, so that clients are served between them."""
        self._changed += 1
        if self._changed % PARTITIONS_AT_ONCE == 0:
            await asyncio.sleep(0)

    async def _remove(self, partition: Partition) -> None:
        """Remove a partition whose topic was deleted, or that moved to other brokers.

        Not while a thread renames its files: it might rename those of a newer topic with the same name.
        """
        async with partition.log.changing:
            if self.find(partition.topic_id.bytes, partition.index) is partition:  # its log dir may have failed
                self._stop(partition)
                self.directories.delete(partition.log)

    def _stop(self, partition: Partition) -> None:
        for key in ((partition.topic_id.bytes, partition.index), (partition.topic, partition.index)):
            if self._partitions.get(key) is partition:
                del self._partitions[key]
        if self._collected is not None:
            self._collected.pop((partition.topic, partition.index), None)
        partition.stop()
        if self._replication is not None:
            self._replication.unfollow(partition)

    def _isr_size_min(self, topic: str) -> int:
        return int(self._settings.topic(topic)["min.insync.replicas"])

    async def _apply_settings(self, changes: Changes) -> None:
        """Apply changed settings to their topics' logs; a broker-wide default applies to all."""
        everyone = any(kind == ResourceType.BROKER for kind, _ in changes.configs)
        topics = {name for kind, name in changes.configs if kind == ResourceType.TOPIC}
        if everyone or topics:
            for partition in [partition for partition in self if everyone or partition.topic in topics]:
                if self.find(partition.topic_id.bytes, partition.index) is partition:  # its log dir may have failed
                    partition.log.configure(self._settings.log(partition.topic))
                    self._reconsider(partition)
                    await self._yield_to_loop()

    def _reconsider(self, partition: Partition) -> None:
        state = self._image.partition(partition.topic, partition.index)
        if state is not None:
            partition.become(state, isr_size_min=self._isr_size_min(partition.topic))

    # replication

    def start_following(self, *, connect: Connect, controller: Controller) -> None:
        """Start to copy from other leaders, and to maintain the in-sync sets of partitions led here."""
        self._replication = Replication(
            self,
            connect=connect,
            controller=controller,
            system=self._system,
            lag_max_s=self._settings.broker("replica.lag.time.max.ms") / 1000,
        )
        for partition in self:
            self._follow_leader(partition)

    async def stop_following(self) -> None:
        """Stop replication in both directions."""
        replication, self._replication = self._replication, None
        lost, self._lost = self._lost, None
        for part in (replication, lost):
            if part is not None:
                await part.stop()
        for stream in list(self._serving):
            stream.close()

    async def serve_follower(self, stream: Stream) -> None:
        """Serve a follower's stream until it ends."""
        self._serving.add(stream)
        try:
            await LeaderStream(stream, self).run()
        finally:
            self._serving.discard(stream)

    def follower_progressed(self, partition: Partition) -> None:
        if self._replication is not None:
            self._replication.follower_progressed(partition)

    def _follow_leader(self, partition: Partition) -> None:
        if self._replication is not None:
            self._replication.follow_leader(partition)

    # failing disks

    def _disk_failed(self, partition: Partition, error: OSError) -> None:
        """Take a failed log dir offline with its partitions; the broker continues with the others."""
        if self.find(partition.topic_id.bytes, partition.index) is not partition:
            return  # it was removed while a thread worked on its files
        self.directories.fail(self.directories.directory_of(partition.log), error)

    def logs_lost(self, lost: Sequence[tuple[str, int]]) -> None:
        """Called by the directories when one of them failed."""
        for key in lost:
            partition = self._partitions.get(key)
            if partition is not None:
                self.offline[key] = partition.topic_id
                self._stop(partition)
        self._losses_changed()

    def report_losses(self, controller: Controller) -> None:
        """Start to report replicas in failed log dirs to the controller."""
        self._lost = LostReplicas(self, controller=controller)

    def _losses_changed(self) -> None:
        if self._lost is not None:
            self._lost.check()

    def high_watermarks(self) -> dict[tuple[str, int], int]:
        return {(partition.topic, partition.index): partition.high_watermark for partition in self}

    async def collect_high_watermarks(self) -> dict[tuple[str, int], int]:
        """The same in slices, by one at a time. A partition that is removed meanwhile is not among them: a new topic of
        its name must not get its high watermark."""
        self._collected = collected = {}
        try:
            async for partition in self.in_slices():
                collected[partition.topic, partition.index] = partition.high_watermark
        finally:
            self._collected = None
        return collected
