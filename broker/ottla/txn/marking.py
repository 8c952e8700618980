"""Markers for partitions that this broker leads: the last step of every end of a transaction."""

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
Marked = Callable[[Partition, Marker, int], None]
"""Called for a marker as soon as it stands in the log, at this offset."""


class MarkerWriter:
    def __init__(self, replicas: ReplicaHost, *, marked: Marked) -> None:
        self._replicas = replicas
        self._marked = marked

    async def write(self, order: MarkerOrder) -> list[Code]:
        """A code for each partition, when all that were written are committed."""
        begun = [self._begin(order, one) for one in order.partitions]
        return list(await asyncio.gather(*(_outcome(one) for one in begun)))

    async def write_all(self, orders: Sequence[MarkerOrder]) -> list[Code]:
        """One code after the other, for all partitions of all orders."""
        found = await asyncio.gather(*map(self.write, orders))
        return [code for codes in found for code in codes]

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
