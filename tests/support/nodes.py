"""Nodes in the test's own process, with real logs and real gRPC, for what no client can ask of a broker."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from ottla.config import configure
from ottla.metadata.decisions.commands import CreateTopics, NewTopic
from ottla.metadata.model.image import Image
from ottla.node import Node
from ottla.node.brokering import BrokerPart
from ottla.node.coordinating import Coordinators
from ottla.storage.workers.worker import InlineWorker
from ottla.system import System
from support.ports import free_port

DEADLINE_S = 30.0
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


async def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {DEADLINE_S} s: {what}"
        await asyncio.sleep(0.02)


class InnerNode:
    """One place in a fleet, over all its lives. `voters` is empty for a broker alone."""

    def __init__(self, folder: Path, node_id: int, *, voters: str = "", **settings: str) -> None:
        self.id = node_id
        self.data_dir = folder / f"data-{node_id}"
        self.port = free_port()
        fleet = {"controller.quorum.voters": voters, "cluster.id": CLUSTER_ID} if voters else {}
        self._settings = {
            "node.id": str(node_id),
            "log.dirs": str(self.data_dir),
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            **fleet,
            **settings,
        }
        self.node: Node | None = None

    async def start(self) -> None:
        self.node = Node(
            configure(self._settings, dict.fromkeys(self._settings, "--set")),
            System(),
            make_broker=lambda config, system: BrokerPart(config, system, make_worker=InlineWorker),
        )
        await self.node.start()

    async def stop(self) -> None:
        node, self.node = self.node, None
        if node is not None:
            await node.stop()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def coordinators(self) -> Coordinators:
        assert self.node is not None and self.node._data is not None
        assert self.node._data.broker._coordinators is not None
        return self.node._data.broker._coordinators

    @property
    def image(self) -> Image:
        return self.coordinators.share_states._feed.image

    async def make_topic(self, name: str, **options: int) -> UUID:
        assert self.node is not None and self.node._quorum is not None
        fleet, quorum = self.node._fleet, self.node._quorum
        controller = fleet.controller if fleet is not None else quorum.controller
        (made,) = await controller.submit(CreateTopics([NewTopic(name, **options)]))
        assert made.ok, made.message
        await until(lambda: name in self.image.topics, f"node {self.id} knows {name}")
        return self.image.topics[name].id


@asynccontextmanager
async def inner_nodes(folder: Path, count: int, **settings: str) -> AsyncIterator[Sequence[InnerNode]]:
    """Started, and stopped in the end."""
    ports = {node_id: free_port() for node_id in range(1, count + 1)}
    voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, port in ports.items()) if count > 1 else ""
    nodes = [InnerNode(folder, node_id, voters=voters, **settings) for node_id in ports]
    try:
        await asyncio.gather(*(node.start() for node in nodes))
        yield nodes
    finally:
        await asyncio.gather(*(node.stop() for node in nodes))
