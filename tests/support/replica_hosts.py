"""Brokers' replica hosts in one process: real logs, real gRPC on loopback, and a controller that decides at once.

The image is made by the real decisions and records; what is missing is the quorum between them and the hosts.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

from ottla.config import configure
from ottla.metadata.decisions.commands import Command, Context, CreateTopics, NewTopic
from ottla.metadata.decisions.controller import decide
from ottla.metadata.decisions.features import SUPPORTED_FEATURES, initial_feature_records
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import (
    Record,
    broker_change_record,
    broker_record,
    config_record,
    partition_change_record,
)
from ottla.metadata.model.state import Broker, Listener, PartitionState, ResourceType
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.replica.settings import LiveSettings
from ottla.rpc import replication
from ottla.rpc.channels import Channels
from ottla.rpc.server import RpcServer
from ottla.storage.core import names
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.directory import claim_all
from ottla.storage.directories.files import FileCache
from ottla.storage.workers.worker import ProcessWorker
from ottla.system import System
from support.logs import make_batch

CLUSTER = "cluster"
DEADLINE_S = 20.0
POLL_S = 0.005
SHORT_LAG = {"replica_lag_time_max_ms": "300", "replica_fetch_wait_max_ms": "100"}


async def until(condition: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not so after {DEADLINE_S} s: {what or condition}"
        await asyncio.sleep(POLL_S)


class HostedBroker:
    """One broker: its host, its gRPC server, its channels."""

    def __init__(self, fleet: "HostFleet", broker_id: int, folder: Path) -> None:
        self.id = broker_id
        self.fleet = fleet
        self.system = System()
        given = {"log.dirs": str(folder), "node.id": str(broker_id), **fleet.settings}
        config = configure(given, dict.fromkeys(given, "--set"), hostname="here")
        settings = LiveSettings(config, broker_id, lambda: fleet.image)
        claimed = claim_all(self.system, [str(folder)], cluster_id=CLUSTER, node_id=broker_id)
        self.directories = LogDirectories(
            claimed,
            system=self.system,
            files=FileCache(self.system.disk, 100),
            on_failure=lambda _, lost: self.host.logs_lost(lost),
            on_all_failed=lambda: None,
        )
        self.settings = settings
        self.host = ReplicaHost(
            node_id=broker_id,
            system=self.system,
            directories=self.directories,
            settings=settings,
            worker=ProcessWorker(),
        )

    async def start(self, controller: Any) -> None:
        self.directories.identify(cluster_id=CLUSTER, node_id=self.id)
        await self.directories.open_all(self.settings.log)
        self.host.start(self.fleet.image)
        await self.host.create_missing()
        self.channels = Channels()
        self.server = RpcServer("127.0.0.1", self.port if hasattr(self, "port") else 0)
        self.port = self.server.port
        replication.serve(self.server, self.host)
        await self.server.start()
        self.host.start_following(connect=replication.connector(self.channels), controller=controller)

        self.host.report_losses(controller)

    async def stop(self) -> None:
        await self.host.stop_following()
        await self.server.stop()
        await self.channels.close()
        await self.directories.close(self.host.high_watermarks())


class HostFleet:
    """`controlled` is awaited before every decision: a test may hold decisions up or refuse them."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.brokers: dict[int, HostedBroker] = {}
        self.random = Random(1)
        self.controlled: Callable[[Command[Any]], Awaitable[None]] | None = None
        self.asked: list[Command[Any]] = []
        self.image = Image(CLUSTER)
        self.apply(*initial_feature_records())

    async def __aenter__(self) -> "HostFleet":
        return self

    async def __aexit__(self, *_: object) -> None:
        for broker in list(self.brokers.values()):
            await self.leave(broker.id)

    # brokers

    async def join(self, *ids: int, racks: dict[int, str] | None = None) -> None:
        for broker_id in ids:
            broker = HostedBroker(self, broker_id, self.folder / str(broker_id))
            await broker.start(self)
            self.brokers[broker_id] = broker
            self.register(broker_id, rack=(racks or {}).get(broker_id))

    def register(self, broker_id: int, *, rack: str | None = None) -> None:
        """A new incarnation with a new epoch, unfenced."""
        epoch = self.image.version + 1
        broker = Broker(
            id=broker_id,
            epoch=epoch,
            incarnation=uuid.UUID(int=self.random.getrandbits(128)),
            rack=rack,
            listeners=(Listener("PLAINTEXT", "127.0.0.1", 9092 + broker_id),),
            grpc_host="127.0.0.1",
            grpc_port=self.brokers[broker_id].port,
        )
        self.apply(broker_record(broker))
        self.fence(broker_id, fenced=False)

    def fence(self, broker_id: int, *, fenced: bool = True) -> None:
        epoch = self.image.brokers[broker_id].epoch
        self.apply(broker_change_record(broker_id=broker_id, epoch=epoch, fenced=fenced))

    async def leave(self, broker_id: int) -> None:
        await self.brokers.pop(broker_id).stop()

    # metadata

    def apply(self, *records: Record) -> None:
        old = self.image
        self.image, changes = old.apply(records, version=old.version + 1, epoch=1)
        for broker in self.brokers.values():
            broker.host.image_moved(old, self.image, changes)

    async def submit(self, command: Command[Any]) -> Any:
        self.asked.append(command)
        if self.controlled is not None:
            await self.controlled(command)
        context = Context(
            now_ms=0,
            new_uuid=lambda: uuid.UUID(int=self.random.getrandbits(128), version=4),
            random=self.random,
            next_version=self.image.version + 1,
            supported_features=SUPPORTED_FEATURES,
        )
        decision = decide(self.image, command, context)
        if decision.records:
            self.apply(*decision.records)
        return decision.reply

    async def create(self, topic: str, *replicas: tuple[int, ...], **settings: str) -> None:
        """One partition per list of replicas, led by the first of it."""
        configs = [(name.replace("_", "."), value) for name, value in settings.items()]
        new = NewTopic(topic, assignments=list(enumerate(replicas)), configs=configs)
        (outcome,) = await self.submit(CreateTopics([new]))
        assert outcome.ok, outcome
        await self.settled()

    async def settled(self) -> None:
        for broker in self.brokers.values():
            await broker.host.settled()

    def configure(self, topic: str, key: str, value: str) -> None:
        self.apply(config_record(resource_type=ResourceType.TOPIC, resource_name=topic, key=key, value=value))

    def configure_broker(self, broker: str, key: str, value: str) -> None:
        self.apply(config_record(resource_type=ResourceType.BROKER, resource_name=broker, key=key, value=value))

    async def elect(self, topic: str, index: int, leader: int, *, isr: tuple[int, ...] | None = None) -> None:
        self.apply(partition_change_record(self.image.topics[topic].id, index, leader=leader, isr=isr))
        await self.settled()

    def place(self, topic: str, index: int, directories: list[uuid.UUID]) -> None:
        self.apply(partition_change_record(self.image.topics[topic].id, index, directories=directories))

    def state(self, topic: str, index: int = 0) -> PartitionState:
        state = self.image.partition(topic, index)
        assert state is not None
        return state

    # partitions

    def partition(self, broker_id: int, topic: str = "orders", index: int = 0) -> Partition:
        return self.brokers[broker_id].host.require(topic, index)

    def write(self, broker_id: int, batches: int = 1, *, topic: str = "orders", index: int = 0, **fields: Any) -> int:
        """Append as the leader; the last offset."""
        partition = self.partition(broker_id, topic, index)
        now_ms = self.brokers[broker_id].system.clock.wall_ms()
        for _ in range(batches):
            appended = partition.append(make_batch(**{"timestamp": now_ms, **fields}), acks_all=True)
        return appended.last_offset

    async def same(self, topic: str = "orders", index: int = 0) -> int:
        """Wait until all replicas have all that the leader has and know it to be committed; the log's end."""
        state = self.state(topic, index)
        leader = self.partition(state.leader, topic, index)
        copies = [self.partition(each, topic, index) for each in state.replicas if each in self.brokers]
        await until(lambda: all(each.high_watermark == leader.log.end_offset for each in copies), "all is committed")
        return leader.log.end_offset


def file_bytes(partition: Partition) -> bytes:
    """All segment files of a log, one after the other."""
    return b"".join(Path(segment.path(names.LOG)).read_bytes()[: segment.size] for segment in partition.log.segments)


def run(test: Callable[[HostFleet], Awaitable[None]], folder: Path, **settings: str) -> None:
    async def main() -> None:
        async with HostFleet(folder, **settings) as fleet:
            await test(fleet)

    asyncio.run(main())


def assert_equal(fleet: HostFleet, *brokers: int, topic: str = "orders", index: int = 0) -> None:
    first, *others = (file_bytes(fleet.partition(each, topic, index)) for each in brokers)
    assert first, "nothing was written"
    assert all(other == first for other in others)


def leave_alone(fleet: HostFleet, broker_id: int, topic: str = "orders") -> None:
    """Append what no follower will ever get: the broker's streams are cut first."""
    for stream in list(fleet.brokers[broker_id].host._serving):
        stream.close()
    fleet.partition(broker_id, topic)._copies.clear()
