"""Questions between brokers about transactions: asked here, or over gRPC where another broker must answer."""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from ottla.errors import Code
from ottla.metadata.feed import MetadataFeed
from ottla.txn.messages import ADD_PARTITIONS, WRITE_MARKERS, Codes, MarkerOrder, Membership, Orders

__all__ = ["Call", "Exchange", "Unreachable"]

log = logging.getLogger("ottla.txn")

Call = Callable[[str, str, bytes], Awaitable[bytes]]
"""Ask the broker at this address by this method. Unreachable."""
Answer = Callable[[bytes], Awaitable[bytes]]


class Unreachable(Exception):
    """No answer came: whether the broker heard the question is not known."""


class Exchange:
    """`call` is None on a broker alone."""

    def __init__(self, *, node_id: int, feed: MetadataFeed, call: Call | None) -> None:
        self.node_id = node_id
        self._feed = feed
        self._call = call
        self.write_here: Callable[[Sequence[MarkerOrder]], Awaitable[list[Code]]]
        self.add_here: Callable[[Membership], Awaitable[list[Code]]]

    async def write_markers(self, broker_id: int, orders: list[MarkerOrder]) -> list[Code]:
        with unanswered_if_it_fails(broker_id):
            if broker_id == self.node_id:
                return await self.write_here(orders)
            count = sum(len(order.partitions) for order in orders)
            return await self._ask(broker_id, WRITE_MARKERS, Orders(orders), count)

    async def add_partitions(self, broker_id: int, membership: Membership) -> list[Code]:
        with unanswered_if_it_fails(broker_id):
            if broker_id == self.node_id:
                return await self.add_here(membership)
            return await self._ask(broker_id, ADD_PARTITIONS, membership, len(membership.partitions))

    async def _ask(self, broker_id: int, method: str, question: msgspec.Struct, count: int) -> list[Code]:
        broker = self._feed.image.brokers.get(broker_id)
        if broker is None or self._call is None:
            raise Unreachable(f"broker {broker_id} is not known")
        data = await self._call(f"{broker.grpc_host}:{broker.grpc_port}", method, msgspec.msgpack.encode(question))
        return _unpacked(data, count, broker_id)

    def answers(self) -> dict[str, Answer]:
        """What this broker answers to others, by method."""
        return {WRITE_MARKERS: self._answer_markers, ADD_PARTITIONS: self._answer_membership}

    async def _answer_markers(self, data: bytes) -> bytes:
        return _packed(await self.write_here(msgspec.msgpack.decode(data, type=Orders).orders))

    async def _answer_membership(self, data: bytes) -> bytes:
        return _packed(await self.add_here(msgspec.msgpack.decode(data, type=Membership)))


@contextmanager
def unanswered_if_it_fails(broker_id: int) -> Iterator[None]:
    """Whoever asks tries again; a fault that nobody thought of must not leave a transaction waiting for ever."""
    try:
        yield
    except Unreachable:
        raise
    except Exception as error:
        log.exception("a question to broker %d failed", broker_id)
        raise Unreachable(f"the question to broker {broker_id} failed: {error!r}") from error


def _unpacked(data: bytes, count: int, broker_id: int) -> list[Code]:
    try:
        codes = [Code(code) for code in msgspec.msgpack.decode(data, type=Codes).codes]
    except ValueError as error:  # also what msgspec raises
        raise Unreachable(f"broker {broker_id} answers something that cannot be read: {error}") from error
    if len(codes) != count:
        raise Unreachable(f"broker {broker_id} answers {len(codes)} codes to {count} questions")
    return codes


def _packed(codes: Sequence[Code]) -> bytes:
    return msgspec.msgpack.encode(Codes([int(code) for code in codes]))
