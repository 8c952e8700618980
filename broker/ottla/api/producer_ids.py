"""Producer ids from blocks that the controller allocates to this broker in the metadata log: each id is used once."""

import asyncio

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AllocateProducerIds
from ottla.metadata.runtime.active import Controller
from ottla.metadata.runtime.feed import MetadataFeed

__all__ = ["ProducerIds"]


class ProducerIds:
    def __init__(self, controller: Controller, feed: MetadataFeed, node_id: int) -> None:
        self._controller = controller
        self._feed = feed
        self._node_id = node_id
        self._next = 0
        self._end = 0
        self._refill = asyncio.Lock()

    async def next(self) -> int:
        """KafkaError if the controller cannot allocate a block now."""
        while self._next == self._end:
            async with self._refill:
                if self._next == self._end:
                    block = await self._controller.submit(AllocateProducerIds(self._node_id, self._epoch()))
                    self._next, self._end = block.first, block.first + block.size
        self._next += 1
        return self._next - 1

    def _epoch(self) -> int:
        """Anyone can unregister a broker; it is not in the image then until it has registered again."""
        registered = self._feed.image.brokers.get(self._node_id)
        if registered is None:
            raise KafkaError(Code.coordinator_load_in_progress, "this broker is being registered again; retry")
        return registered.epoch
