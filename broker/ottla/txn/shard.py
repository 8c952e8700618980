"""The transactions of one partition of the state topic, while this broker leads it in one epoch."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from ottla.coordination.core.effects import Send
from ottla.coordination.shard import CoordinatorShard
from ottla.coordination.writing import WriteRules
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.txn.core import records
from ottla.txn.core.deciding import NEEDS_PRODUCER_ID, Decision
from ottla.txn.core.states import ENDING
from ottla.txn.core.transaction import NONE, Transaction
from ottla.wire.text_limits import size_bytes

__all__ = ["Ask", "Delivery", "TransactionShard", "kept_bytes_of"]

log = logging.getLogger("ottla.txn")

RETRY_SECONDS = 0.1
EXPIRED_PER_TURN_MAX = 50  # then the loop serves other work
TRANSACTION_BYTES = 500  # in memory, beside the id
Ask = Callable[[Transaction | None, int], Decision]
"""A decision function: takes the transaction and a new producer id, or -1."""


class Delivery(Protocol):
    async def deliver(self, transaction: Transaction, *, coordinator_epoch: int, leads: Callable[[], bool]) -> bool:
        """True when every partition has its marker; False when this coordinator has been replaced."""


class TransactionShard(CoordinatorShard):
    holds = "transactional ids"

    def __init__(
        self,
        partition: Partition,
        *,
        clock: Clock,
        delivery: Delivery,
        new_producer_id: Callable[[], Awaitable[int]],
        write_rules: WriteRules,
    ) -> None:
        super().__init__(partition, clock=clock, write_rules=write_rules)
        self.transactions: dict[str, Transaction] = {}
        self.kept_bytes = 0
        """Of all ids, used or not."""
        self._written: dict[str, int] = {}  # id → the log offset of its last record
        self._delivery = delivery
        self._new_producer_id = new_producer_id
        self._ending: dict[str, asyncio.Task[None]] = {}

    @property
    def count(self) -> int:
        return len(self.transactions)

    # deciding

    async def decide(self, transactional_id: str, ask: Ask, *, patience_s: float) -> Decision:
        """Decide, write, and return when committed. KafkaError, in a coordinator's code, when this broker cannot.

        While the previous transaction is ending, the call waits up to `patience_s`, so that the client need not retry.
        """
        new_producer_id, give_up_at = NONE, self.clock.monotonic() + patience_s
        while True:
            self._require_leads()
            decision = ask(self.transactions.get(transactional_id), new_producer_id)
            if decision is NEEDS_PRODUCER_ID:
                new_producer_id = await self._fresh_producer_id()
                continue
            if decision.write is not None:
                self.write(decision.write)
            await self.until_id_committed(transactional_id)
            patience_s = give_up_at - self.clock.monotonic()
            if decision.code is not Code.concurrent_transactions or patience_s <= 0:
                return decision
            await self._until_ended(transactional_id, patience_s)

    async def _fresh_producer_id(self) -> int:
        try:
            return await self._new_producer_id()
        except KafkaError as error:
            raise KafkaError(Code.coordinator_not_available, f"no producer id is available: {error}") from error

    def _require_leads(self) -> None:
        if not self.leads:
            raise KafkaError(Code.not_coordinator)

    async def until_id_committed(self, transactional_id: str) -> None:
        """Wait until all records of this id are committed. KafkaError when this broker stops leading first."""
        await self.until_committed(self._written.get(transactional_id, NONE))

    async def _until_ended(self, transactional_id: str, patience_s: float) -> None:
        ending = self._ending.get(transactional_id)
        if ending is not None:
            await asyncio.wait([ending], timeout=patience_s)
        else:
            await asyncio.sleep(patience_s)

    # writing

    def write(self, transaction: Transaction) -> None:
        """Append and apply, or neither (KafkaError). A Prepare state then runs to its end by itself."""
        effects = records.effects_of(transaction, on_appended=partial(self._put, transaction))
        self._runner.perform(transaction.id, effects)

    def _put(self, transaction: Transaction, offset: int) -> None:
        if transaction.id not in self.transactions:
            self.kept_bytes += kept_bytes_of(transaction.id)
        self.transactions[transaction.id] = transaction
        self._written[transaction.id] = offset

    def _remove(self, transactional_id: str) -> None:
        if self.transactions.pop(transactional_id, None) is not None:
            self.kept_bytes -= kept_bytes_of(transactional_id)

    async def expire(self, *, now_ms: int, expiration_ms: int) -> int:
        """Remove ids that were not used for `expiration_ms`, in slices. Returns how many."""
        count, old = 0, [one for one in self.transactions.values() if one.is_expired(now_ms, expiration_ms)]
        for begin in range(0, len(old), EXPIRED_PER_TURN_MAX):
            if begin:
                await asyncio.sleep(0)
            if not self.leads:
                break
            unused = [one for one in old[begin : begin + EXPIRED_PER_TURN_MAX] if self.transactions.get(one.id) is one]
            for one in unused:
                self._expire_one(one.id)
            count += len(unused)
        return count

    def _expire_one(self, transactional_id: str) -> None:
        offset = self._runner.append([(records.key_of(transactional_id), None)])
        self._remove(transactional_id)
        self._written[transactional_id] = offset
        self._runner.when_committed(offset, partial(self._forget, transactional_id))

    def _forget(self, transactional_id: str, _: Code) -> None:
        """Requests for the id wait until its deletion is committed."""
        if transactional_id not in self.transactions:
            self._written.pop(transactional_id, None)

    def timed_out(self, now_ms: int) -> list[Transaction]:
        return [one for one in self.transactions.values() if one.is_timed_out(now_ms)]

    # ending: markers to all partitions, then the last record

    def on_send(self, message: Transaction) -> None:
        """Send markers and write the last record in a separate task. `_until_ended` waits for that task."""
        transaction = message
        task = self._ending[transaction.id] = asyncio.ensure_future(self._finish(transaction))
        task.add_done_callback(lambda _: self._finished(transaction.id, task))

    def _finished(self, transactional_id: str, task: "asyncio.Task[None]") -> None:
        if self._ending.get(transactional_id) is task:
            del self._ending[transactional_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s: the end of transaction %s failed", self, transactional_id, exc_info=error)

    async def _finish(self, transaction: Transaction) -> None:
        try:
            await self._runner.until_committed(self._written[transaction.id], timeout_s=None)
        except KafkaError:
            return  # another broker leads; it finds the transaction in the log
        if await self._delivery.deliver(transaction, coordinator_epoch=self.epoch, leads=lambda: self.leads):
            await self._complete(transaction)

    async def _complete(self, transaction: Transaction) -> None:
        while self.leads and self.transactions.get(transaction.id) is transaction:
            try:
                self.write(transaction.marked(now_ms=self.clock.wall_ms()))
            except KafkaError as error:
                log.warning("%s: completing transaction %s failed; retrying: %s", self, transaction.id, error)
                await asyncio.sleep(RETRY_SECONDS)

    # beginning and end

    def replay(self, key: memoryview, value: memoryview | None) -> None:
        transactional_id = records.read_key(key)
        if value is None:
            self._remove(transactional_id)
            self._written.pop(transactional_id, None)
        else:
            self._put(records.read_value(transactional_id, value), self.replayed_offset)

    def loaded(self) -> None:
        self.loading = False
        for transaction in list(self.transactions.values()):
            if transaction.state in ENDING:
                with self.isolating_errors(transaction.id):
                    self._runner.perform(transaction.id, [Send(transaction)])

    def unload(self) -> None:
        """Another broker leads: the partition's waiters are answered by the partition."""
        self.ended = True
        self._runner.stop()
        for task in self._ending.values():
            task.cancel()


def kept_bytes_of(transactional_id: str) -> int:
    """The memory that an id takes until it expires."""
    return size_bytes(transactional_id) + TRANSACTION_BYTES
