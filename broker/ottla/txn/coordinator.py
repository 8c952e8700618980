"""The transactions that this broker coordinates: a shard for every partition of the state topic that it leads."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.group.loading import Loading
from ottla.group.partitioning import partition_of
from ottla.group.writing import WriteRules
from ottla.metadata.active import Controller
from ottla.metadata.changes import Changes
from ottla.metadata.feed import MetadataFeed
from ottla.metadata.image import Image
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.replica.settings import LiveSettings
from ottla.system import System
from ottla.txn import deciding
from ottla.txn.deciding import Decision, ProducerSession
from ottla.txn.exchange import Exchange
from ottla.txn.markers import Markers
from ottla.txn.messages import Membership, Partitions
from ottla.txn.shard import Ask, TransactionShard
from ottla.txn.state_topic import STATE_TOPIC, StateTopic
from ottla.txn.transaction import Transaction

__all__ = ["FEATURE", "TransactionCoordinator"]

log = logging.getLogger("ottla.txn")

FEATURE = "transaction.version"
NOBODY = -1
COMMIT_SECONDS_MAX = 5.0
CHECK_SECONDS_MAX = 365 * 86_400.0


class TransactionCoordinator:
    def __init__(
        self,
        *,
        config: BrokerConfig,
        settings: LiveSettings,
        system: System,
        feed: MetadataFeed,
        replicas: ReplicaHost,
        controller: Controller,
        new_producer_id: Callable[[], Awaitable[int]],
        exchange: Exchange,
    ) -> None:
        self._settings = settings
        self._system = system
        self._feed = feed
        self._replicas = replicas
        self._new_producer_id = new_producer_id
        self._topic = StateTopic(config=config, settings=settings, controller=controller)
        self._markers = Markers(feed=feed, exchange=exchange)
        self._shards: dict[int, TransactionShard] = {}
        self._partitions = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False
        self._stopped = False
        exchange.add_here = self.member_codes

    # looking up

    @property
    def version(self) -> int:
        """The finalized transaction.version."""
        return self._feed.image.features.get(FEATURE, 0)

    @property
    def shards(self) -> list[TransactionShard]:
        return list(self._shards.values())

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """KafkaError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_REQUEST."""
        if not transactional_id:
            raise KafkaError(Code.invalid_request, "a transactional id must not be empty")
        shard = self._shards.get(partition_of(transactional_id, self._partitions)) if self._partitions else None
        if shard is None or shard.loading or not shard.leads:
            will_lead = self.leader(transactional_id) == self._replicas.node_id
            raise KafkaError(Code.coordinator_load_in_progress if will_lead else Code.not_coordinator)
        return shard

    async def leader_of(self, transactional_id: str) -> int:
        """The broker that coordinates this id, or -1 while there is none. The topic is made if it must be."""
        if STATE_TOPIC not in self._feed.image.topics:
            await self._topic.make(self._feed.image)
        while self._looking is not None:
            await asyncio.wait([self._looking])  # so that a producer need not come twice
        return self.leader(transactional_id)

    def leader(self, transactional_id: str) -> int:
        topic = self._feed.image.topics.get(STATE_TOPIC)
        if topic is None:
            return NOBODY
        return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader

    # requests

    async def initiate(self, transactional_id: str, *, timeout_ms: int, expected: ProducerSession | None) -> Decision:
        shard = self.shard_of(transactional_id)
        if not 0 < timeout_ms <= self._settings.broker("transaction.max.timeout.ms"):
            return Decision(Code.invalid_transaction_timeout)

        def ask(transaction: Transaction | None, new_producer_id: int) -> Decision:
            return deciding.initiate(
                transaction,
                transactional_id=transactional_id,
                timeout_ms=timeout_ms,
                expected=expected,
                new_producer_id=new_producer_id,
                version=self.version,
                now_ms=self._now_ms(),
            )

        return await self._decide(shard, transactional_id, ask)

    async def add(self, transactional_id: str, session: ProducerSession, partitions: Partitions) -> Decision:
        shard = self.shard_of(transactional_id)
        return await self._decide(
            shard, transactional_id, lambda one, _: deciding.add(one, session, partitions, now_ms=self._now_ms())
        )

    async def verify(self, transactional_id: str, session: ProducerSession, partitions: Partitions) -> list[Code]:
        shard = self.shard_of(transactional_id)
        await shard.until_committed(transactional_id)
        code, codes = deciding.verify(shard.transactions.get(transactional_id), session, partitions)
        return [code if code is not Code.none else codes[one] for one in partitions]

    async def end(self, transactional_id: str, session: ProducerSession, *, commit: bool, version: int) -> Decision:
        shard = self.shard_of(transactional_id)

        def ask(transaction: Transaction | None, new_producer_id: int) -> Decision:
            return deciding.end(
                transaction,
                session,
                commit=commit,
                version=version,
                new_producer_id=new_producer_id,
                now_ms=self._now_ms(),
            )

        return await self._decide(shard, transactional_id, ask)

    async def member_codes(self, membership: Membership) -> list[Code]:
        """What a partition's leader asks before it lets a first batch in."""
        session = ProducerSession(membership.producer_id, membership.epoch)
        partitions = membership.partitions
        try:
            if not membership.add:
                return await self.verify(membership.transactional_id, session, partitions)
            if any(self._feed.image.partition(*one) is None for one in partitions):
                raise KafkaError(Code.coordinator_not_available, "this broker has not heard of the partition yet")
            decision = await self.add(membership.transactional_id, session, partitions)
            return [decision.code] * len(partitions)
        except KafkaError as error:
            return [error.code] * len(partitions)

    def _now_ms(self) -> int:
        return self._system.clock.wall_ms()

    async def _decide(self, shard: TransactionShard, transactional_id: str, ask: Ask) -> Decision:
        patience_ms = self._settings.broker("add.partitions.to.txn.retry.backoff.max.ms")
        return await shard.decide(transactional_id, ask, patience_s=patience_ms / 1000)

    # following the image

    def start(self) -> None:
        self._feed.subscribe(self._image_moved)
        self._look()
        self._keep(asyncio.ensure_future(self._abort_late()))
        self._keep(asyncio.ensure_future(self._expire()))

    async def stop(self) -> None:
        self._stopped = True
        for shard in self._shards.values():
            shard.unload()
        self._shards.clear()
        self._markers.close()
        tasks = [*self._tasks, *([self._looking] if self._looking else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        topic = new.topics.get(STATE_TOPIC)
        if (topic is not None and topic.id in changes.partitions) or STATE_TOPIC in changes.deleted.values():
            self._look()

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
        topic = self._replicas.image.topics.get(STATE_TOPIC)
        self._partitions = len(topic.partitions) if topic is not None else 0
        for index, shard in list(self._shards.items()):
            if not shard.leads:
                del self._shards[index]
                shard.unload()
        for index in range(self._partitions):
            partition = self._replicas.find(STATE_TOPIC, index)
            if partition is not None and partition.is_leader and index not in self._shards:
                self._begin(index, partition)

    def _begin(self, index: int, partition: Partition) -> None:
        shard = self._shards[index] = TransactionShard(
            partition,
            clock=self._system.clock,
            delivery=self._markers,
            new_producer_id=self._new_producer_id,
            write_rules=WriteRules(commit_s_max=COMMIT_SECONDS_MAX),
        )
        if partition.log.end_offset == partition.log.start_offset:
            shard.loaded()
        else:
            self._keep(asyncio.ensure_future(self._load(index, shard)))

    def _keep(self, task: "asyncio.Task[None]") -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self, index: int, shard: TransactionShard) -> None:
        loading = Loading(shard, read_bytes_max=self._settings.broker("transaction.state.log.load.buffer.size"))
        try:
            complete = await loading.run()
        except KafkaError as error:
            log.error("%s cannot be loaded: %s", shard, error)
            return
        if complete and self._shards.get(index) is shard:
            shard.loaded()
            log.info("%s: %d transactional ids loaded from %d records", shard, len(shard.transactions), loading.records)

    # upkeep

    def _ready(self) -> list[TransactionShard]:
        return [shard for shard in self._shards.values() if shard.leads and not shard.loading]

    async def _pause(self, setting: str) -> None:
        await asyncio.sleep(min(self._settings.broker(setting) / 1000, CHECK_SECONDS_MAX))

    async def _abort_late(self) -> None:
        while True:
            await self._pause("transaction.abort.timed.out.transaction.cleanup.interval.ms")
            for shard in self._ready():
                for late in shard.late(self._now_ms()):
                    await self._abort(shard, late)

    async def _abort(self, shard: TransactionShard, late: Transaction) -> None:
        """In the place of its producer, unless that one was faster."""

        def ask(transaction: Transaction | None, new_producer_id: int) -> Decision:
            if transaction is not late:
                return Decision(Code.none)
            return deciding.fence(late, version=self.version, new_producer_id=new_producer_id, now_ms=self._now_ms())

        try:
            decision = await shard.decide(late.id, ask, patience_s=0)
        except KafkaError as error:
            log.warning("transaction %s is too old but cannot be aborted now: %s", late.id, error)
            return
        if decision.write is not None:
            log.info("transaction %s of producer %d took longer than %d ms", late.id, late.producer_id, late.timeout_ms)

    async def _expire(self) -> None:
        while True:
            await self._pause("transaction.remove.expired.transaction.cleanup.interval.ms")
            expiration_ms = self._settings.broker("transactional.id.expiration.ms")
            for shard in self._ready():
                try:
                    count = shard.expire(now_ms=self._now_ms(), expiration_ms=expiration_ms)
                except KafkaError as error:
                    log.warning("%s: expired transactional ids stay for now: %s", shard, error)
                else:
                    if count:
                        log.info("%s: %d transactional ids expired", shard, count)
                await asyncio.sleep(0)
