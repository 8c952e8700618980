"""The role `broker`: listeners for clients, partitions with their logs, and what a broker does on its own."""

import logging
import uuid
from collections.abc import Callable, Sequence

from ottla.api.allowances import Allowances
from ottla.api.binding import bind
from ottla.api.pacing import LongWork, Pace
from ottla.api.registry import load_all
from ottla.config import BrokerConfig, Endpoint
from ottla.coordination.asking import Asking, Call
from ottla.coordination.coordinator import Surroundings
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Listener as Advertised
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.relay import ControllerLink
from ottla.net.admission import Admission
from ottla.net.large_requests import LargeRequests
from ottla.net.listener import Listener
from ottla.net.memory import AnswerMemory, RequestMemory
from ottla.net.shared import Shared
from ottla.node.authorizing import audit_file_of, authorizer_of
from ottla.node.coordinating import Coordinators
from ottla.node.foundation import Foundation
from ottla.node.parts import Parts, parts_of
from ottla.node.securing import Securing
from ottla.replica.host import ReplicaHost
from ottla.replica.settings import LiveSettings
from ottla.replica.upkeep import Upkeep
from ottla.security.core.audit import AuditTrail, NoTrail
from ottla.storage.compaction.cleaner import Cleaner
from ottla.storage.core.names import TopicPartition
from ottla.storage.workers.worker import ProcessWorker, Worker
from ottla.system import FileShares, System, file_limit

__all__ = ["BrokerPart"]

log = logging.getLogger("ottla")

REQUEST_BYTES_MAX = 32 << 20  # where queued.max.request.bytes does not say
CLEANER_BYTES_PER_KEY = 200  # of the map from a key's hash to its last offset, as Python keeps it


class BrokerPart:
    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        make_listener: Callable[[Endpoint, BrokerConfig], Listener] = Listener,
        make_worker: Callable[[], Worker] = ProcessWorker,
    ) -> None:
        load_all()
        self._config = config
        self._system = system
        self.securing = Securing(config)
        self._listeners = [make_listener(endpoint, config) for endpoint in config.listeners]
        self._replicas: ReplicaHost | None = None
        self._upkeep: Upkeep | None = None
        self._coordinators: Coordinators | None = None
        self._opened = False
        self.shared: Shared | None = None
        """What connections have in common, as soon as clients are served."""
        self._worker = make_worker()
        self._cleaning_worker = make_worker()  # its own: a producer must not wait for a segment to be rewritten
        self._trail = audit_file_of(config, system)
        self.ports = {listener.endpoint.name: listener.bind() for listener in self._listeners}

    @property
    def trail(self) -> AuditTrail:
        return self._trail if self._trail is not None else NoTrail()

    @property
    def replicas(self) -> ReplicaHost:
        assert self._replicas is not None, "open first"
        return self._replicas

    def advertised(self) -> list[Advertised]:
        """Port 0 stands for the one that the system chose."""
        places = self._config.advertised
        return [Advertised(e.name, e.host, e.port or self.ports[e.name], e.protocol) for e in places]

    async def open(self, foundation: Foundation, feed: MetadataFeed) -> None:
        """The logs, in the roles that the image gives: it must hold everything that was committed before now."""
        directories = self._directories = foundation.directories
        settings = self._settings = LiveSettings(self._config, self._config.node_id, lambda: feed.image)
        self._feed = feed
        self._replicas = ReplicaHost(
            node_id=self._config.node_id,
            system=self._system,
            directories=directories,
            settings=settings,
            worker=self._worker,
        )
        await directories.open_all(settings.log, topic_ids(feed.image))
        image = feed.image  # nothing may wait between here and `subscribe`: a change would be missed
        directories.reconcile(topic_ids(image), replicas_of(image, self._config.node_id))
        self._replicas.start(image)
        feed.subscribe(self._replicas.image_moved)
        await self._replicas.create_missing()
        self._opened = True
        cleaner = Cleaner(
            directories,
            worker=self._cleaning_worker,
            system=self._system,
            stable_offset=self._stable_offset,
            keys_max=self._config["log.cleaner.dedupe.buffer.size"] // CLEANER_BYTES_PER_KEY,
        )
        self._upkeep = Upkeep(host=self._replicas, settings=settings, system=self._system, cleaner=cleaner)

    def _stable_offset(self, key: TopicPartition) -> int:
        partition = self.replicas.find(*key)
        return 0 if partition is None else partition.last_stable_offset

    def logs_lost(self, lost: Sequence[TopicPartition]) -> None:
        if self._replicas is not None:
            self._replicas.logs_lost(lost)

    async def serve(self, controller: ControllerLink, *, cluster_id: str, call: Call | None) -> Asking:
        """`call` reaches other brokers; what is returned answers them."""
        assert self._upkeep is not None
        self._upkeep.start()
        around = Surroundings(
            config=self._config,
            settings=self._settings,
            system=self._system,
            feed=self._feed,
            replicas=self.replicas,
            controller=controller,
        )
        coordinators = self._coordinators = Coordinators(around, call=call)
        coordinators.start()
        parts = parts_of(around, coordinators, controller, cluster_id=cluster_id)
        self.shared = self._share(parts, around)
        secured = self.securing.secure(around, self.shared.trail)
        for listener in self._listeners:
            await listener.start(self.shared, secured[listener.endpoint.name])
        return coordinators.asking

    def connections(self) -> dict[str, int]:
        """By listener. From any thread."""
        return {listener.endpoint.name: listener.connection_count for listener in self._listeners}

    def _share(self, parts: Parts, around: Surroundings) -> Shared:
        """What all connections have in common."""
        config, system = self._config, self._system
        shares = FileShares.of(file_limit(), logs_wanted=config["ottla.open.files.max"])
        self._warn_of_few_files(shares)
        answers = AnswerMemory(config["ottla.answers.max.bytes"], system.clock.monotonic)
        long_work = LongWork(Pace(system.clock.monotonic), answers, config["ottla.response.bytes.max"])
        queued_bytes_max: int = config["queued.max.request.bytes"]
        return Shared(
            handlers=bind(parts.by_name()),
            long_work=long_work,
            clock=system.clock,
            threads=system.threads,
            allowances=_allowances(around),
            authorizer=authorizer_of(config, around.feed),
            trail=self.trail,
            admission=Admission(self._settings.broker, self._settings.listener, files_max=shares.connections),
            requests=RequestMemory(queued_bytes_max if queued_bytes_max > 0 else REQUEST_BYTES_MAX),
            answers=answers,
            large_requests=LargeRequests(system.threads, long_work, elements_max=config["ottla.request.elements.max"]),
        )

    def _warn_of_few_files(self, shares: FileShares) -> None:
        partitions = sum(1 for _ in self.replicas)
        if partitions > shares.logs:
            log.warning(
                "%d partitions share %d open files: every access may have to open one; raise `ulimit -n` (now %d)",
                partitions,
                shares.logs,
                file_limit(),
            )

    async def stop_serving(self) -> None:
        """No more clients, no more copying, no more work of one's own."""
        await self.securing.stop()
        for listener in self._listeners:
            await listener.stop()
        if self._coordinators is not None:
            await self._coordinators.stop()
        if self._upkeep is not None:
            await self._upkeep.stop()
        if self._replicas is not None:
            await self._replicas.stop_following()

    async def close(self, epoch: int) -> None:
        """Everything on the disk. `epoch` is the one that this broker was registered with."""
        if self._opened:  # otherwise nothing here may say that the logs were closed cleanly
            await self.replicas.settled()
            await self._directories.close(self.replicas.high_watermarks(), broker_epoch=epoch)
        if self._trail is not None:
            self._trail.close()
        await self._worker.close()
        await self._cleaning_worker.close()


def _allowances(around: Surroundings) -> Allowances:
    allowances = Allowances(
        around.system.clock, around.settings.broker, around.feed.image, of_listener=around.settings.listener
    )
    around.feed.subscribe(allowances.image_moved)
    return allowances


def topic_ids(image: Image) -> dict[TopicPartition, uuid.UUID]:
    return {(topic.name, each.index): topic.id for topic in image.topics.values() for each in topic.partitions}


def replicas_of(image: Image, node_id: int) -> set[TopicPartition]:
    topics = image.topics.values()
    return {(topic.name, each.index) for topic in topics for each in topic.partitions if node_id in each.replicas}
