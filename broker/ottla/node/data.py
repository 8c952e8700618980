"""What a node does on its data loop: everything here is made, called and ended there."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.config import BrokerConfig
from ottla.handover import Handover
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.relay import ControllerLink
from ottla.node.brokering import BrokerPart
from ottla.node.foundation import Foundation
from ottla.storage.core.names import TopicPartition
from ottla.system import System

if TYPE_CHECKING:
    from ottla.node.peers import PeersPart

__all__ = ["DataPart", "over_grpc"]


def over_grpc(config: BrokerConfig) -> "PeersPart":
    from ottla.node.peers import PeersPart  # a broker alone does without gRPC

    return PeersPart(config)


class DataPart:
    """`feed` is driven from the control loop. `make_peers` is None for a broker alone."""

    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        handover: Handover,
        make_broker: Callable[[BrokerConfig, System], BrokerPart],
        make_peers: "Callable[[BrokerConfig], PeersPart] | None",
    ) -> None:
        self._handover = handover
        self.broker = make_broker(config, system)
        self.peers = make_peers(config) if make_peers is not None else None
        if self.peers is not None:
            self.peers.audit_to(self.broker.trail)
        self.feed: MetadataFeed
        self._controller: ControllerLink
        handover.pulse.start()

    async def open(self, foundation: Foundation, controller: ControllerLink) -> None:
        """The logs, and copying from and to others."""
        assert self._handover.data.is_here()
        self._controller = controller
        await self.broker.open(foundation, self.feed)
        self.broker.replicas.report_losses(controller)
        if self.peers is not None:
            self.feed.subscribe(self.peers.image_moved)
            await self.peers.replicate(self.broker.replicas, controller)

    async def serve(self, cluster_id: str) -> None:
        """Clients and other brokers."""
        await self.broker.replicas.settled()
        asking = await self.broker.serve(
            self._controller, cluster_id=cluster_id, call=self.peers.ask_broker if self.peers is not None else None
        )
        if self.peers is not None:
            self.peers.answer_brokers(asking)

    def logs_lost(self, lost: Sequence[TopicPartition]) -> None:
        self.broker.logs_lost(lost)

    async def stop_serving(self) -> None:
        await self.broker.stop_serving()

    async def close(self, epoch: int) -> None:
        """Everything on the disk; the loop has no pulse afterwards."""
        if self.peers is not None:
            await self.peers.stop()  # with the streams on which followers copy
        await self.broker.close(epoch)
        self._handover.pulse.stop()
