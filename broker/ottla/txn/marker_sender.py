"""Sends a transaction's markers to the leaders of its partitions until all have written them.

Orders to one broker are gathered while an earlier request to it is in flight, so that many small transactions share
requests. If a leader changed, is unreachable or lacks replicas, the order is retried; partitions of deleted topics are
done.
"""

import asyncio
import logging
from collections.abc import Callable

from ottla.coordination.asking import Unreachable
from ottla.errors import Code
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.txn.core.messages import PARTITIONS_PER_MESSAGE_MAX, MarkerOrder
from ottla.txn.core.states import State
from ottla.txn.core.transaction import TopicPartition, Transaction
from ottla.txn.exchange import Exchange

__all__ = ["MarkerSender"]

log = logging.getLogger("ottla.txn")

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.02, 1.0
ORDERS_PER_MESSAGE_MAX = 1000
# INVALID_PRODUCER_EPOCH: a newer epoch has written there, so the earlier transaction has ended.
DONE = (Code.none, Code.invalid_producer_epoch)


class _Outbox:
    """Orders to one broker."""

    def __init__(self, broker_id: int, exchange: Exchange) -> None:
        self._broker_id = broker_id
        self._exchange = exchange
        self._waiting: list[tuple[MarkerOrder, asyncio.Future[list[Code]]]] = []
        self._sending: asyncio.Task[None] | None = None

    async def send(self, order: MarkerOrder) -> list[Code]:
        answer: asyncio.Future[list[Code]] = asyncio.get_running_loop().create_future()
        self._waiting.append((order, answer))
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_all())
        return await answer

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                count = self._next_count()
                batch, self._waiting = self._waiting[:count], self._waiting[count:]
                await self._send_some(batch)
        finally:
            self._sending = None

    def _next_count(self) -> int:
        """How many waiting orders fit into one request, at least one."""
        partitions = 0
        for count, (order, _) in enumerate(self._waiting[:ORDERS_PER_MESSAGE_MAX]):
            partitions += len(order.partitions)
            if count and partitions > PARTITIONS_PER_MESSAGE_MAX:
                return count
        return min(len(self._waiting), ORDERS_PER_MESSAGE_MAX)

    async def _send_some(self, batch: "list[tuple[MarkerOrder, asyncio.Future[list[Code]]]]") -> None:
        try:
            codes = await self._exchange.write_markers(self._broker_id, [order for order, _ in batch])
        except Unreachable as error:
            log.info("markers for broker %d were not answered; retrying: %s", self._broker_id, error)
            codes = [Code.network_exception for order, _ in batch for _ in order.partitions]
        position = 0
        for order, answer in batch:
            end = position + len(order.partitions)
            if not answer.done():
                answer.set_result(codes[position:end])
            position = end

    def close(self) -> None:
        if self._sending is not None:
            self._sending.cancel()


class MarkerSender:
    def __init__(self, *, feed: MetadataFeed, exchange: Exchange) -> None:
        self._feed = feed
        self._exchange = exchange
        self._outboxes: dict[int, _Outbox] = {}

    async def deliver(self, transaction: Transaction, *, coordinator_epoch: int, leads: Callable[[], bool]) -> bool:
        left, pause = set(transaction.partitions), RETRY_SECONDS_MIN
        while left:
            orders = self._orders(transaction, left, coordinator_epoch)
            outcomes = await asyncio.gather(*(self._send(broker, order) for broker, order in orders))
            for (_, order), codes in zip(orders, outcomes, strict=True):
                if Code.transaction_coordinator_fenced in codes:
                    log.warning("transaction %s has another coordinator now, which will finish it", transaction.id)
                    return False
                left -= {one for one, code in zip(order.partitions, codes, strict=True) if code in DONE}
            if not leads():
                return False
            if left:
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_SECONDS_MAX)
        return True

    async def _send(self, broker_id: int, order: MarkerOrder) -> list[Code]:
        outbox = self._outboxes.get(broker_id)
        if outbox is None:
            outbox = self._outboxes[broker_id] = _Outbox(broker_id, self._exchange)
        return await outbox.send(order)

    def _orders(
        self, transaction: Transaction, left: set[TopicPartition], coordinator_epoch: int
    ) -> list[tuple[int, MarkerOrder]]:
        """Orders by leader; partitions of deleted topics are removed from `left`."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for topic, index in sorted(left):
            state = self._feed.image.partition(topic, index)
            if state is None:
                left.discard((topic, index))
            elif state.leader >= 0:
                by_leader.setdefault(state.leader, []).append((topic, index))
        most = PARTITIONS_PER_MESSAGE_MAX
        return [
            (leader, self._order(transaction, partitions[begin : begin + most], coordinator_epoch))
            for leader, partitions in by_leader.items()
            for begin in range(0, len(partitions), most)
        ]

    def _order(self, transaction: Transaction, partitions: list[TopicPartition], coordinator_epoch: int) -> MarkerOrder:
        return MarkerOrder(
            producer_id=transaction.producer_id,
            epoch=transaction.epoch,
            coordinator_epoch=coordinator_epoch,
            commit=transaction.state is State.PREPARE_COMMIT,
            partitions=partitions,
            after_epoch=transaction.bumps_epochs,
        )

    def close(self) -> None:
        for outbox in self._outboxes.values():
            outbox.close()
