"""A node: puts the parts together, starts them in order, and stops them in the other order.

A broker alone is a fleet of one: the same quorum, controller and replica path as many.
"""

import asyncio
import logging
from functools import partial

from ottla.api.call import Services
from ottla.api.cluster_view import PartitionCache
from ottla.api.fetch_sessions import FetchSessions
from ottla.api.producer_ids import ProducerIds
from ottla.api.registry import load_all
from ottla.config import BROKER, TOPIC, BrokerConfig, Type, check_broker_setting, check_topic_setting, render
from ottla.errors import KafkaError, Refusal
from ottla.metadata.active import ActiveController
from ottla.metadata.commands import Context, FenceBroker, RegisterBroker, UnfenceBroker
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.metadata.feed import MetadataFeed
from ottla.metadata.state import Listener as Advertised
from ottla.metadata.state import ResourceType
from ottla.net.admission import Admission
from ottla.net.listener import Listener
from ottla.raft.core import RaftConfig
from ottla.raft.driver import RaftDriver, SnapshotLimits
from ottla.raft.messages import Member, Voter
from ottla.raft.store import RaftStore
from ottla.replica.host import ReplicaHost
from ottla.replica.settings import LiveSettings
from ottla.replica.upkeep import Upkeep
from ottla.storage.cleaner import Cleaner
from ottla.storage.directories import LogDirectories
from ottla.storage.directory import claim_all
from ottla.storage.files import FileCache
from ottla.storage.folder_names import TopicPartition
from ottla.storage.worker import ProcessWorker
from ottla.system import System, uuid_text

__all__ = ["Node"]

log = logging.getLogger("ottla")

CLEANER_BYTES_PER_KEY = 200  # of the map from a key's hash to its last offset, as Python keeps it


class Node:
    """`failed` ends with the reason when the node cannot go on."""

    def __init__(self, config: BrokerConfig, system: System) -> None:
        self.config = config
        self.system = system
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._listeners = [Listener(endpoint, config) for endpoint in config.listeners]
        self._epoch = -1
        self._replicas: ReplicaHost
        self._upkeep: Upkeep

    # starting

    async def start(self) -> None:
        load_all()
        self.ports = {listener.endpoint.name: listener.bind() for listener in self._listeners}
        try:
            self._claim_directories()
            await self._start_quorum()
            await self._start_replicas()
            await self._join()
        except BaseException:
            await self._close_listeners()
            raise
        self._upkeep.start()
        services, admission = self._services(), Admission(self._settings.broker)
        for listener in self._listeners:
            await listener.start(services, admission)

    def _claim_directories(self) -> None:
        """Lock the log dirs, learn or decide the cluster id, and format what is empty."""
        claimed = claim_all(
            self.system, self.config.log_dirs, cluster_id=self.config.cluster_id, node_id=self.config.node_id
        )
        self._directories = LogDirectories(
            claimed,
            system=self.system,
            files=FileCache(self.system.disk, self.config["ottla.open.files.max"]),
            on_failure=lambda _, lost: self._replicas.logs_lost(lost),
            on_all_failed=lambda: self._fail(Refusal("no log dir is left; see the lines above")),
        )
        self.cluster_id = self._directories.cluster_id or self.config.cluster_id or self._new_cluster_id()
        self._directories.identify(cluster_id=self.cluster_id, node_id=self.config.node_id)

    def _new_cluster_id(self) -> str:
        if len(self.config.voters) > 1 or self.config.bootstrap_servers:
            raise Refusal(
                "the data directory is empty and the fleet has several voters: "
                "run `ottla format --cluster-id ID` with the same id on every node, or set cluster.id"
            )
        return uuid_text(self.system.new_uuid())

    async def _start_quorum(self) -> None:
        node_id = self.config.node_id
        first = self._directories.online[0]
        assert first.meta is not None
        self._feed = MetadataFeed(self.cluster_id)
        self._quorum = RaftDriver(
            RaftConfig(
                member=Member(node_id, first.meta.directory_id),
                election_timeout_s=self.config["controller.quorum.election.timeout.ms"] / 1000,
            ),
            store=RaftStore(self.system.disk, self.config.metadata_log_dir),
            system=self.system,
            machine=self._feed,
            seed=(Voter(node_id),),
            snapshot_limits=SnapshotLimits(bytes_max=self.config["metadata.log.max.record.bytes.between.snapshots"]),
        )
        self._settings = LiveSettings(self.config, node_id, lambda: self._feed.image)
        self._controller = ActiveController(
            feed=self._feed,
            driver=self._quorum,
            system=self.system,
            node_id=node_id,
            context=partial(self._context, self._settings),
        )
        await self._quorum.start()
        self._quorum.closed.add_done_callback(self._quorum_closed)
        await self._quorum.until_leader_known()

    def _context(self, settings: LiveSettings, **facts: object) -> Context:
        """What the controller may know of settings when it decides."""
        return Context(
            default_partitions=settings.broker("num.partitions"),
            default_replication_factor=settings.broker("default.replication.factor"),
            check_config=check_setting,
            is_list_setting=lambda kind, name: is_list(kind, name),
            default_setting=default_text,
            **facts,  # type: ignore[arg-type]
        )

    def _quorum_closed(self, closed: "asyncio.Future[None]") -> None:
        error = closed.exception()
        if error is not None:
            self._fail(Refusal(f"the metadata log cannot be written: {error}"))

    async def _start_replicas(self) -> None:
        self._worker = ProcessWorker()
        self._cleaning_worker = ProcessWorker()  # its own: a producer must not wait for a segment to be rewritten
        self._replicas = ReplicaHost(
            node_id=self.config.node_id,
            system=self.system,
            directories=self._directories,
            settings=self._settings,
            worker=self._worker,
        )
        image = self._feed.image
        await self._directories.open_all(self._settings.log)
        expected = {(t.name, p.index): t.id for t in image.topics.values() for p in t.partitions}
        self._directories.reconcile(expected)
        self._replicas.start(image)
        self._feed.subscribe(self._replicas.image_moved)
        await self._replicas.create_missing()
        cleaner = Cleaner(
            self._directories,
            worker=self._cleaning_worker,
            system=self.system,
            stable_offset=self._stable_offset,
            keys_max=self.config["log.cleaner.dedupe.buffer.size"] // CLEANER_BYTES_PER_KEY,
        )
        self._upkeep = Upkeep(host=self._replicas, settings=self._settings, system=self.system, cleaner=cleaner)

    def _stable_offset(self, key: TopicPartition) -> int:
        partition = self._replicas.find(*key)
        return 0 if partition is None else partition.last_stable_offset

    async def _join(self) -> None:
        """Register with the controller, and be unfenced: from now on this broker may lead."""
        node_id = self.config.node_id
        self._epoch = await self._controller.submit(
            RegisterBroker(
                id=node_id,
                incarnation=self.system.new_uuid(),
                cluster_id=self.cluster_id,
                listeners=[
                    Advertised(e.name, e.host, e.port or self.ports[e.name], e.protocol) for e in self.config.advertised
                ],
                rack=self.config.rack,
                log_dirs=[one.meta.directory_id for one in self._directories.online if one.meta],
                features=SUPPORTED_FEATURES,
            )
        )
        await self._controller.submit(UnfenceBroker(node_id, self._epoch))
        await self._replicas.settled()

    def _advertised(self) -> list[Advertised]:
        """Port 0 stands for the one that the system chose."""
        places = self.config.advertised
        return [Advertised(e.name, e.host, e.port or self.ports[e.name], e.protocol) for e in places]

    def _services(self) -> Services:
        return Services(
            node_id=self.config.node_id,
            cluster_id=self.cluster_id,
            config=self.config,
            settings=self._settings,
            system=self.system,
            feed=self._feed,
            controller=self._controller,
            quorum=self._quorum,
            replicas=self._replicas,
            producer_ids=ProducerIds(self._controller, self._feed, self.config.node_id),
            fetch_sessions=FetchSessions(
                sessions_max=self.config["max.incremental.fetch.session.cache.slots"], random=self.system.random
            ),
            partition_cache=PartitionCache(),
        )

    # stopping

    def _fail(self, reason: Refusal) -> None:
        if not self.failed.done():
            self.failed.set_exception(reason)

    async def stop(self) -> None:
        """Leave cleanly: no more clients, nothing led, everything on the disk."""
        await self._close_listeners()
        await self._upkeep.stop()
        try:
            await self._controller.submit(FenceBroker(self.config.node_id, self._epoch, in_controlled_shutdown=True))
            await self._replicas.settled()
        except KafkaError as error:
            log.warning("left without telling the controller: %s", error)
        await self._directories.close(self._replicas.high_watermarks())
        await self._worker.close()
        await self._cleaning_worker.close()
        await self._quorum.stop()

    async def _close_listeners(self) -> None:
        for listener in self._listeners:
            await listener.stop()


def check_setting(resource_type: int, name: str, value: str) -> str | None:
    """None when the value is good, otherwise the message for the client."""
    if resource_type == ResourceType.TOPIC:
        return check_topic_setting(name, value)
    return check_broker_setting(name, value, dynamic=True)


def is_list(resource_type: int, name: str) -> bool:
    table = TOPIC if resource_type == ResourceType.TOPIC else BROKER
    return name in table and table[name].type is Type.LIST


def default_text(resource_type: int, name: str) -> str | None:
    table = TOPIC if resource_type == ResourceType.TOPIC else BROKER
    return render(table[name].default) if name in table and table[name].default is not None else None
