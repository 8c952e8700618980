"""Writes markers into partitions that this broker leads: the last step of ending a transaction."""

import asyncio
from collections.abc import Callable, Sequence

from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.txn.core.messages import MarkerOrder
from ottla.txn.core.transaction import TopicPartition
from ottla.wire.markers import Marker

__all__ = ["Marked", "MarkerWriter"]

COMMIT_SECONDS_MAX = 30.0
PARTITIONS_PER_SLICE = 100  # written in one turn of the loop, in a few milliseconds
Marked = Callable[[Partition, Marker, int], None]
"""Called for each marker when it is appended, with its offset."""


class MarkerWriter:
    def __init__(self, replicas: ReplicaHost, *, marked: Marked) -> None:
        self._replicas = replicas
        self._marked = marked

    async def write(self, order: MarkerOrder) -> list[Code]:
        """A code for each partition, when all markers are committed."""
        if len(order.partitions) > PARTITIONS_PER_SLICE:
            return await self._write_in_slices([order])
        begun = [self._begin(order, one) for one in order.partitions]
        return list(await asyncio.gather(*(_outcome(one) for one in begun)))

    async def write_all(self, orders: Sequence[MarkerOrder]) -> list[Code]:
        """The codes for all partitions of all orders, in order."""
        if sum(len(order.partitions) for order in orders) > PARTITIONS_PER_SLICE:
            return await self._write_in_slices(orders)
        found = await asyncio.gather(*map(self.write, orders))
        return [code for codes in found for code in codes]

    async def _write_in_slices(self, orders: Sequence[MarkerOrder]) -> list[Code]:
        begun: list[asyncio.Future[None] | Code] = []
        for order in orders:
            for one in order.partitions:
                begun.append(self._begin(order, one))
                if len(begun) % PARTITIONS_PER_SLICE == 0:
                    await asyncio.sleep(0)
        waiting = [one for one in begun if not isinstance(one, Code)]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=COMMIT_SECONDS_MAX)
            for unfinished in late:
                unfinished.cancel()
        return [one if isinstance(one, Code) else _code_of(one) for one in begun]

    def _begin(self, order: MarkerOrder, place: TopicPartition) -> "asyncio.Future[None] | Code":
        marker = Marker(order.producer_id, order.epoch, order.coordinator_epoch, order.commit)
        try:
            partition = self._replicas.require(*place)
            if order.after_epoch:
                partition.log.producers.refuse_late(marker)
            offset = partition.write_marker(marker).last_offset
            self._marked(partition, marker, offset)
            return partition.committed(offset) or Code.none
        except KafkaError as error:
            return error.code


async def _outcome(begun: "asyncio.Future[None] | Code") -> Code:
    if isinstance(begun, Code):
        return begun
    try:
        await asyncio.wait_for(begun, COMMIT_SECONDS_MAX)
    except KafkaError as error:
        return error.code
    except TimeoutError:
        return Code.request_timed_out
    return Code.none


def _code_of(ended: "asyncio.Future[None]") -> Code:
    if not ended.done() or ended.cancelled():
        return Code.request_timed_out
    try:
        ended.result()
    except KafkaError as error:
        return error.code
    return Code.none
