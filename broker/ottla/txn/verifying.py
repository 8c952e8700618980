"""Before it appends the first batch of a transaction, a partition's leader asks the coordinator (KIP-890).

Clients of the old flow have added the partition before, which is verified. For clients that bump their epoch with every
transaction (Produce 12 and later) it is added now. Concurrent requests for one producer are sent together.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from ottla.coordination.asking import Unreachable
from ottla.errors import Code, KafkaError
from ottla.txn.core.messages import Membership
from ottla.txn.core.transaction import TopicPartition
from ottla.txn.exchange import Exchange

__all__ = ["Asked", "Verifier"]

TRY_AGAIN = frozenset(
    {
        Code.network_exception,
        Code.coordinator_load_in_progress,
        Code.coordinator_not_available,
        Code.not_coordinator,
        Code.request_timed_out,
    }
)


class Asked(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int
    add: bool


class Verifier:
    """`leader` returns the broker that coordinates a transactional id, or -1."""

    def __init__(self, leader: Callable[[str], int], exchange: Exchange) -> None:
        self._leader = leader
        self._exchange = exchange
        self._waiting: dict[Asked, dict[TopicPartition, asyncio.Future[Code]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def verify(self, asked: Asked, partition: TopicPartition, *, knows_abortable: bool) -> None:
        """KafkaError, in a produce request's code, unless the partition is in the transaction.

        `knows_abortable`: the client understands TRANSACTION_ABORTABLE.
        """
        waiting = self._waiting.get(asked)
        if waiting is None:
            waiting = self._waiting[asked] = {}
            asyncio.get_running_loop().call_soon(self._ask_soon, asked)
        answer = waiting.get(partition)
        if answer is None:
            answer = waiting[partition] = asyncio.get_running_loop().create_future()
        code = await asyncio.shield(answer)
        if code is not Code.none:
            raise _refusal(code, asked, partition, knows_abortable=knows_abortable)

    def _ask_soon(self, asked: Asked) -> None:
        task = asyncio.ensure_future(self._ask(asked, self._waiting.pop(asked)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ask(self, asked: Asked, waiting: "dict[TopicPartition, asyncio.Future[Code]]") -> None:
        membership = Membership(
            transactional_id=asked.transactional_id,
            producer_id=asked.producer_id,
            epoch=asked.epoch,
            partitions=list(waiting),
            add=asked.add,
        )
        coordinator = self._leader(asked.transactional_id)
        try:
            codes = await self._exchange.add_partitions(coordinator, membership)
        except Unreachable:
            codes = [Code.network_exception] * len(waiting)
        for answer, code in zip(waiting.values(), codes, strict=True):
            if not answer.done():
                answer.set_result(code)


def _refusal(code: Code, asked: Asked, partition: TopicPartition, *, knows_abortable: bool) -> KafkaError:
    """The error for producers, translated as in Kafka's ReplicaManager."""
    where = f"partition {partition[0]}-{partition[1]} and the transaction of {asked.transactional_id}"
    if code in TRY_AGAIN or (code is Code.concurrent_transactions and not asked.add):
        return KafkaError(Code.not_enough_replicas, f"Unable to verify {where}. Underlying error: {code.name}")
    if code is Code.producer_fenced:
        return KafkaError(Code.invalid_producer_epoch, f"{where}: the producer's epoch {asked.epoch} is fenced")
    if code is Code.transaction_abortable and not knows_abortable:
        return KafkaError(Code.invalid_txn_state, f"Partition was not added to the transaction: {where}")
    return KafkaError(code, where)
