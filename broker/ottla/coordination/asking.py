"""Requests between brokers: each has a method and a MessagePack body, and goes over gRPC unless it is for this node."""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from ottla.metadata.runtime.feed import MetadataFeed

__all__ = ["Answer", "Asking", "Call", "Unreachable"]

log = logging.getLogger("ottla.coordination")

Call = Callable[[str, str, bytes], Awaitable[bytes]]
"""Call this method of the broker at this address. Raises Unreachable."""
Answer = Callable[[bytes], Awaitable[bytes]]
Answered = TypeVar("Answered")


class Unreachable(Exception):
    """No answer arrived. The broker may or may not have received the request."""


class Asking:
    """`call` is None on a broker alone; `answers` maps each method to this broker's handler."""

    def __init__(self, *, node_id: int, feed: MetadataFeed, call: Call | None) -> None:
        self.node_id = node_id
        self._feed = feed
        self._call = call
        self.answers: dict[str, Answer] = {}

    async def ask(self, broker_id: int, method: str, question: msgspec.Struct, answer_type: type[Answered]) -> Answered:
        """Another broker's answer. Raises Unreachable."""
        broker = self._feed.image.brokers.get(broker_id)
        if broker is None or self._call is None:
            raise Unreachable(f"broker {broker_id} is not known")
        data = await self._call(f"{broker.grpc_host}:{broker.grpc_port}", method, msgspec.msgpack.encode(question))
        try:
            return msgspec.msgpack.decode(data, type=answer_type)
        except ValueError as error:  # also what msgspec raises
            raise Unreachable(f"broker {broker_id} sent an answer that cannot be decoded: {error}") from error

    @contextmanager
    def errors_as_unreachable(self, broker_id: int) -> Iterator[None]:
        """Callers retry after Unreachable. Any other error becomes Unreachable too, so that no caller waits for
        ever."""
        try:
            yield
        except Unreachable:
            raise
        except Exception as error:
            log.exception("a request to broker %d failed", broker_id)
            raise Unreachable(f"the request to broker {broker_id} failed: {error!r}") from error
