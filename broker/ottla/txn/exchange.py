"""Requests between brokers about transactions, and this broker's answers; requests to itself stay local."""

import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ottla.coordination.asking import Asking, Unreachable
from ottla.errors import Code
from ottla.txn.core.messages import (
    ADD_PARTITIONS,
    PARTITIONS_PER_MESSAGE_MAX,
    WRITE_MARKERS,
    Codes,
    MarkerOrder,
    Membership,
    Orders,
    TooMany,
    read_orders,
)

__all__ = ["Exchange"]

log = logging.getLogger("ottla.txn")

WriteMarkers = Callable[[Sequence[MarkerOrder]], Awaitable[list[Code]]]
AddPartitions = Callable[[Membership], Awaitable[list[Code]]]


class Exchange:
    """`write_here` writes markers into partitions that this broker leads. `coordinate` sets its coordinator later."""

    def __init__(self, asking: Asking, *, write_here: WriteMarkers) -> None:
        self._asking = asking
        self._write_here = write_here
        self._add_here: AddPartitions
        asking.answers[WRITE_MARKERS] = self._answer_markers
        asking.answers[ADD_PARTITIONS] = self._answer_membership

    def coordinate(self, add_here: AddPartitions) -> None:
        """Set the handler for memberships: the coordinator itself, which needs the exchange first."""
        self._add_here = add_here

    async def write_markers(self, broker_id: int, orders: list[MarkerOrder]) -> list[Code]:
        with self._asking.errors_as_unreachable(broker_id):
            if broker_id == self._asking.node_id:
                return await self._write_here(orders)
            count = sum(len(order.partitions) for order in orders)
            return await self._ask(broker_id, WRITE_MARKERS, Orders(orders), count)

    async def add_partitions(self, broker_id: int, membership: Membership) -> list[Code]:
        with self._asking.errors_as_unreachable(broker_id):
            if broker_id == self._asking.node_id:
                return await self._add_here(membership)
            return await self._ask(broker_id, ADD_PARTITIONS, membership, len(membership.partitions))

    async def _ask(self, broker_id: int, method: str, question: msgspec.Struct, count: int) -> list[Code]:
        numbers = (await self._asking.ask(broker_id, method, question, Codes)).codes
        if len(numbers) != count:
            raise Unreachable(f"broker {broker_id} sent {len(numbers)} codes for {count} items")
        try:
            return [Code(number) for number in numbers]
        except ValueError as error:
            raise Unreachable(f"broker {broker_id} sent an answer that cannot be decoded: {error}") from error

    async def _answer_markers(self, data: bytes) -> bytes:
        try:
            orders = read_orders(data)
        except TooMany as many:
            # A single code: the sender expects one per partition and treats this as no answer.
            log.error("a request has markers for %s partitions; the limit is %d", many, PARTITIONS_PER_MESSAGE_MAX)
            return _packed([Code.invalid_request])
        return _packed(await self._write_here(orders))

    async def _answer_membership(self, data: bytes) -> bytes:
        return _packed(await self._add_here(msgspec.msgpack.decode(data, type=Membership)))


def _packed(codes: Sequence[Code]) -> bytes:
    return msgspec.msgpack.encode(Codes([int(code) for code in codes]))
