"""How simulated clients of transactions find leaders and coordinators, and ask them by the broker's own handlers."""

from functools import partial
from random import Random
from typing import Any

from ottla.coordination.core.partitioning import partition_of
from sim.fetching import handled
from sim.node import SimNode
from sim.txn_history import TxnHistory
from sim.txn_steps import Steps
from sim.workload import Client, Disconnected

__all__ = ["LEDGER", "Directory"]

LEDGER = "ledger"


class Directory(Client):
    """Who leads what, as some node's metadata says; what is older than what was heard before is not believed."""

    def __init__(self, history: TxnHistory, steps: Steps, random: Random) -> None:
        super().__init__(steps.network, history.referee, random)
        self.history, self.steps = history, steps
        self._epochs: dict[tuple[str, int], int] = {}

    def find(self, topic: str, index: int) -> SimNode | None:
        image = self.some_image()
        state = image.partition(topic, index) if image is not None else None
        if state is None or state.leader_epoch < self._epochs.get((topic, index), -1):
            return None
        self._epochs[topic, index] = state.leader_epoch
        return self.network.nodes.get(state.leader)

    def coordinator(self, topic: str, key: str) -> SimNode | None:
        first = self.network.nodes[1].life
        known = first.quorum.feed.image.topics.get(topic) if first is not None and first.hears else None
        return self.find(topic, partition_of(key, len(known.partitions))) if known is not None else None

    async def call(self, node: SimNode | None, api_key: tuple[int, int], request: Any) -> Any | None:
        """None when nobody answers."""
        if node is None:
            return None
        try:
            answering = partial(handled, node, api_key, request, self.random)
            return await self.ask(node, self.steps.answering(node, api_key, answering))
        except Disconnected:
            return None
