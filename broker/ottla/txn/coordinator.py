"""The transactions that this broker coordinates: a shard for every partition of the state topic that it leads."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable

from ottla.coordination.coordinator import Coordinator, Surroundings
from ottla.coordination.internal_topic import InternalTopic
from ottla.coordination.loading import Loading
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.txn.core import deciding
from ottla.txn.core.deciding import Decision, ProducerSession
from ottla.txn.core.messages import Membership, Partitions
from ottla.txn.core.transaction import Transaction
from ottla.txn.exchange import Exchange
from ottla.txn.marker_sender import MarkerSender
from ottla.txn.shard import Ask, TransactionShard
from ottla.txn.timeouts import abort_timed_out
from ottla.wire.text_limits import TEXT_BYTES_MAX, is_too_long

__all__ = ["FEATURE", "STATE_TOPIC", "TransactionCoordinator"]

FEATURE = "transaction.version"
COMMIT_SECONDS_MAX = 5.0
STATE_TOPIC = "__transaction_state"


class StateTopic(InternalTopic):
    name = STATE_TOPIC
    partitions_setting = "transaction.state.log.num.partitions"
    factor_setting = "transaction.state.log.replication.factor"

    def _configs(self, factor: int) -> list[tuple[str, str]]:
        return [
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(self._limited("transaction.state.log.min.isr", most=factor))),
            ("segment.bytes", str(self._settings.broker("transaction.state.log.segment.bytes"))),
            ("unclean.leader.election.enable", "false"),
        ]


class TransactionCoordinator(Coordinator[TransactionShard]):
    def __init__(
        self, around: Surroundings, *, new_producer_id: Callable[[], Awaitable[int]], exchange: Exchange
    ) -> None:
        topic = StateTopic(config=around.config, settings=around.settings, controller=around.controller)
        super().__init__(topic, around)
        self._new_producer_id = new_producer_id
        self._markers = MarkerSender(feed=around.feed, exchange=exchange)
        exchange.coordinate(self.member_codes)

    async def stop(self) -> None:
        self._markers.close()
        await super().stop()

    # looking up

    @property
    def version(self) -> int:
        """The finalized transaction.version."""
        return self._feed.image.features.get(FEATURE, 0)

    def shard_of(self, transactional_id: str) -> TransactionShard:
        """Also KafkaError: INVALID_REQUEST."""
        if not transactional_id:
            raise KafkaError(Code.invalid_request, "a transactional id must not be empty")
        if is_too_long(transactional_id):
            raise KafkaError(Code.invalid_request, f"a transactional id has at most {TEXT_BYTES_MAX} bytes")
        return self._shard_of(transactional_id)

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
        await shard.until_id_committed(transactional_id)
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
        """A partition's leader asks before it appends a transaction's first batch."""
        session = ProducerSession(membership.producer_id, membership.epoch)
        partitions = membership.partitions
        try:
            if not membership.add:
                return await self.verify(membership.transactional_id, session, partitions)
            if any(self._feed.image.partition(*one) is None for one in partitions):
                raise KafkaError(Code.coordinator_not_available, "this broker does not know the partition yet")
            decision = await self.add(membership.transactional_id, session, partitions)
            return [decision.code] * len(partitions)
        except KafkaError as error:
            return [error.code] * len(partitions)

    def _now_ms(self) -> int:
        return self._system.clock.wall_ms()

    async def _decide(self, shard: TransactionShard, transactional_id: str, ask: Ask) -> Decision:
        patience_ms = self._settings.broker("add.partitions.to.txn.retry.backoff.max.ms")
        return await shard.decide(transactional_id, ask, patience_s=patience_ms / 1000)

    # shards

    def _new_shard(self, partition: Partition) -> TransactionShard:
        return TransactionShard(
            partition,
            clock=self._system.clock,
            delivery=self._markers,
            new_producer_id=self._new_producer_id,
            write_rules=WriteRules(commit_s_max=COMMIT_SECONDS_MAX),
        )

    def _loading(self, shard: TransactionShard) -> Loading:
        return Loading(shard, read_bytes_max=self._settings.broker("transaction.state.log.load.buffer.size"))

    # upkeep

    def _upkeep(self) -> Iterable[Coroutine[None, None, None]]:
        interval = "transaction.remove.expired.transaction.cleanup.interval.ms"
        yield self._abort_timed_out()
        yield self._expire_every(interval, self._expire, "transactional ids")

    async def _expire(self, shard: TransactionShard) -> int:
        expiration_ms = self._settings.broker("transactional.id.expiration.ms")
        return await shard.expire(now_ms=self._now_ms(), expiration_ms=expiration_ms)

    async def _abort_timed_out(self) -> None:
        while True:
            await self._pause("transaction.abort.timed.out.transaction.cleanup.interval.ms")
            for shard in self._ready():
                await abort_timed_out(shard, version=self.version, now_ms=self._now_ms())
