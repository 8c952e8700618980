"""A broker's coordinators: of groups, transactions and share-partitions, and what they ask of other brokers."""

from ottla.api.producer_ids import ProducerIds
from ottla.coordination.asking import Asking, Call
from ottla.coordination.coordinator import Surroundings
from ottla.group.coordinator import GroupCoordinator
from ottla.share.coordinator import ShareCoordinator
from ottla.share.host import ShareHost
from ottla.share.persister import CoordinatedPersister
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.exchange import Exchange
from ottla.txn.marker_writer import MarkerWriter
from ottla.txn.verifying import Verifier

__all__ = ["Coordinators"]


class Coordinators:
    """`call` reaches other brokers; `asking` answers them."""

    def __init__(self, around: Surroundings, *, call: Call | None) -> None:
        node_id = around.config.node_id
        self.asking = Asking(node_id=node_id, feed=around.feed, call=call)
        self.share_states = ShareCoordinator(around)
        self.persister = CoordinatedPersister(
            self.share_states, asking=self.asking, feed=around.feed, clock=around.system.clock
        )
        self.groups = GroupCoordinator(around, persister=self.persister)
        self.shares = ShareHost(around, self.persister)
        self.markers = MarkerWriter(around.replicas, marked=self.groups.marked)
        exchange = Exchange(self.asking, write_here=self.markers.write_all)
        self.producer_ids = ProducerIds(around.controller, around.feed, node_id)
        self.transactions = TransactionCoordinator(around, new_producer_id=self.producer_ids.next, exchange=exchange)
        self.verifier = Verifier(self.transactions.leader, exchange)

    def start(self) -> None:
        self.share_states.start()
        self.shares.start()
        self.groups.start()
        self.transactions.start()

    async def stop(self) -> None:
        await self.shares.stop()
        await self.transactions.stop()
        await self.groups.stop()
        await self.share_states.stop()
