"""A coordinator on this broker: a shard for every partition of its topic that this broker leads."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Generic, NamedTuple, TypeVar

from ottla.config import BrokerConfig
from ottla.coordination.core.partitioning import partition_of
from ottla.coordination.internal_topic import InternalTopic
from ottla.coordination.loading import Loading
from ottla.coordination.shard import CoordinatorShard
from ottla.errors import Code, KafkaError
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.active import Controller
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.replica.settings import LiveSettings
from ottla.system import System
from ottla.wire.text_limits import is_too_long

__all__ = ["Coordinator", "Surroundings"]

log = logging.getLogger("ottla.coordination")

NOBODY = -1
CHECK_SECONDS_MAX = 365 * 86_400.0
LOAD_RETRY_SECONDS_MIN, LOAD_RETRY_SECONDS_MAX = 0.1, 10.0

Kept = TypeVar("Kept", bound=CoordinatorShard)


class Surroundings(NamedTuple):
    """The parts of a broker that its coordinators need."""

    config: BrokerConfig
    settings: LiveSettings
    system: System
    feed: MetadataFeed
    replicas: ReplicaHost
    controller: Controller


class Coordinator(ABC, Generic[Kept]):
    def __init__(self, topic: InternalTopic, around: Surroundings) -> None:
        self._topic = topic
        self._settings = around.settings
        self._system = around.system
        self._feed = around.feed
        self._replicas = around.replicas
        self._shards: dict[int, Kept] = {}
        self._partitions = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._reconciling: asyncio.Task[None] | None = None
        self._must_reconcile = False
        self._stopped = False
        self.skipped_records = 0
        """Records that could not be decoded, over all shards loaded so far."""

    # what it coordinates

    @abstractmethod
    def _new_shard(self, partition: Partition) -> Kept: ...

    @abstractmethod
    def _loading(self, shard: Kept) -> Loading: ...

    @abstractmethod
    def _upkeep(self) -> Iterable[Coroutine[None, None, None]]:
        """Background work that runs until the coordinator stops."""

    # who keeps what

    @property
    def shards(self) -> list[Kept]:
        return list(self._shards.values())

    def shard_of(self, key: str) -> Kept:
        """The shard of this group or transactional id. KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        return self._shard_of(key)

    def _shard_of(self, key: str) -> Kept:
        shard = self._shards.get(partition_of(key, self._partitions)) if self._partitions else None
        if shard is None or shard.loading or not shard.leads:
            raise self._absence(key)
        return shard

    def _absence(self, key: str) -> KafkaError:
        """LOAD_IN_PROGRESS if this broker is about to coordinate the key: clients then retry here instead of
        searching."""
        will_lead = self.leader(key) == self._replicas.node_id
        return KafkaError(Code.coordinator_load_in_progress if will_lead else Code.not_coordinator)

    async def leader_of(self, key: str) -> int:
        """The broker that coordinates this key, or -1 while there is none. Creates the topic if it does not exist."""
        if self._topic.name not in self._feed.image.topics:
            await self._topic.make(self._feed)
        while self._reconciling is not None:
            await asyncio.wait([self._reconciling])  # so that the client's first request finds the shard
        return self.leader(key)

    def leader(self, key: str) -> int:
        """NOBODY also for a key that is too long for a record: it is not hashed."""
        topic = self._feed.image.topics.get(self._topic.name)
        if topic is None or is_too_long(key):
            return NOBODY
        return topic.partitions[partition_of(key, len(topic.partitions))].leader

    def _ready(self) -> list[Kept]:
        return [shard for shard in self._shards.values() if shard.leads and not shard.loading]

    # following the image

    def start(self) -> None:
        self._feed.subscribe(self._image_moved)
        self._reconcile_soon()
        for task in self._upkeep():
            self._keep(asyncio.ensure_future(task))

    async def stop(self) -> None:
        self._stopped = True
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()
        tasks = [*self._tasks, *([self._reconciling] if self._reconciling else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        name = self._topic.name
        topic = new.topics.get(name)
        if (topic is not None and topic.id in changes.partitions) or name in changes.deleted.values():
            self._reconcile_soon()

    def _reconcile_soon(self) -> None:
        """Reconcile after the replicas have applied the image."""
        self._must_reconcile = True
        if self._reconciling is None and not self._stopped:
            self._reconciling = asyncio.ensure_future(self._reconcile_all())

    async def _reconcile_all(self) -> None:
        try:
            while self._must_reconcile:
                self._must_reconcile = False
                await self._replicas.settled()
                self._reconcile()
        finally:
            self._reconciling = None

    def _reconcile(self) -> None:
        topic = self._replicas.image.topics.get(self._topic.name)
        self._partitions = len(topic.partitions) if topic is not None else 0
        for index, shard in list(self._shards.items()):
            if not shard.leads:
                del self._shards[index]
                shard.unload()
                if shard.count:
                    log.info("%s: another broker coordinates its %d %s", shard, shard.count, shard.holds)
        for index in range(self._partitions):
            partition = self._replicas.find(self._topic.name, index)
            if partition is not None and partition.is_leader and index not in self._shards:
                self._begin(index, partition)

    def _begin(self, index: int, partition: Partition) -> None:
        shard = self._shards[index] = self._new_shard(partition)
        if partition.log.end_offset == partition.log.start_offset:
            shard.loaded()
        else:
            self._keep(asyncio.ensure_future(self._load(index, shard)))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self, index: int, shard: Kept) -> None:
        """Retry until loaded. Each attempt has a new shard: a failed one may hold half of a change."""
        pause_s = LOAD_RETRY_SECONDS_MIN
        while not await self._try_to_load(index, shard):
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LOAD_RETRY_SECONDS_MAX)
            if self._shards.get(index) is not shard or not shard.leads:
                return  # another broker leads, or this one in another epoch, with a shard of its own
            shard.unload()
            shard = self._shards[index] = self._new_shard(shard.partition)

    async def _try_to_load(self, index: int, shard: Kept) -> bool:
        """False when loading failed and must be retried."""
        loading = self._loading(shard)
        begun = self._system.clock.monotonic()
        try:
            complete = await loading.run()
        except KafkaError as error:
            log.error("%s cannot be loaded; retrying: %s", shard, error)
            return False
        except Exception:
            log.exception("%s cannot be loaded; retrying", shard)
            return False
        self.skipped_records += loading.skipped
        if complete and self._shards.get(index) is shard:
            shard.loaded()
            took_ms = (self._system.clock.monotonic() - begun) * 1000
            counts = (shard.count, shard.holds, loading.records)
            log.info("%s: %d %s loaded from %d records in %.0f ms", shard, *counts, took_ms)
        return True

    # upkeep

    async def _pause(self, setting: str) -> None:
        await asyncio.sleep(min(self._settings.broker(setting) / 1000, CHECK_SECONDS_MAX))

    async def _expire_every(self, setting: str, expire: Callable[[Kept], Awaitable[int]], what: str) -> None:
        """`expire` returns how many it removed; KafkaError when removing is not possible now."""
        while True:
            await self._pause(setting)
            for shard in self._ready():
                try:
                    count = await expire(shard)
                except KafkaError as error:
                    log.warning("%s: expired %s could not be removed yet: %s", shard, what, error)
                else:
                    if count:
                        log.info("%s: %d %s expired", shard, count, what)
                await asyncio.sleep(0)
