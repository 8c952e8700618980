"""Producer ids out of blocks that the controller gives to this broker through the metadata log: never one twice."""

import asyncio

from ottla.metadata.active import Controller
from ottla.metadata.commands import AllocateProducerIds
from ottla.metadata.feed import MetadataFeed

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
        while self._next == self._end:
            async with self._refill:
                if self._next == self._end:
                    epoch = self._feed.image.brokers[self._node_id].epoch
                    block = await self._controller.submit(AllocateProducerIds(self._node_id, epoch))
                    self._next, self._end = block.first, block.first + block.size
        self._next += 1
        return self._next - 1
