"""A node of the simulated fleet: the broker's own parts, put together as ottla.node does, on simulated surroundings."""

from collections.abc import Sequence
from random import Random
from typing import Any

from ottla.api.registry import load_all
from ottla.config import configure
from ottla.errors import Refusal
from ottla.metadata.commands import RegisterBroker
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.metadata.rounds import Rounds
from ottla.metadata.state import Listener
from ottla.metadata.watch import BrokerWatch
from ottla.node.foundation import Foundation
from ottla.node.membership import FleetMembership
from ottla.node.quorum import QuorumPart
from ottla.raft.messages import Entry, Member, Message
from ottla.replica.host import ReplicaHost
from ottla.replica.upkeep import Upkeep
from ottla.rpc.control import ControlService
from ottla.rpc.forwarding import Forwarding
from ottla.storage.cleaner import Cleaner
from ottla.storage.folder_names import TopicPartition
from ottla.storage.worker import InlineWorker
from ottla.system import System
from sim.disk import ROOT, Platter, SimDisk
from sim.invariants import Referee
from sim.network import Network, QuorumLink, SimChannels, SimStream, address_of, connector
from sim.virtual_loop import Process, SkewedClock, VirtualLoop, VirtualThreads

__all__ = ["Life", "SimNode"]

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
GONE_SECONDS_MAX = 0.2  # until others notice that a process has ended


class SimNode:
    """Over all its lives."""

    def __init__(self, node_id: int, *, ids: Sequence[int], network: Network, referee: Referee, random: Random) -> None:
        self.id = node_id
        self.network = network
        self.referee = referee
        self.random = random
        self.loop: VirtualLoop = network.loop
        self.platter = Platter(Random(random.getrandbits(64)))
        self.life: Life | None = None
        self.streams: list[SimStream] = []
        self.lives = 0
        self.unclean = False  # its process was killed, and it is not in sync again since
        self.power_lost = False  # the same after a power loss
        self.loses_power = False  # at the end of the present life
        self.doomed: Life | None = None  # the life that ends, or ended, by one of these
        settings = {
            "node.id": str(node_id),
            "log.dirs": ROOT,
            "cluster.id": CLUSTER_ID,
            "controller.quorum.voters": ",".join(f"{each}@{address_of(each)}" for each in ids),
            "process.roles": "broker,controller",
            "listeners": "PLAINTEXT://localhost:9092",
            "min.insync.replicas": "2",
            "default.replication.factor": "3",
            "replica.lag.time.max.ms": "4000",
            "metadata.log.max.record.bytes.between.snapshots": "3000",
            "leader.imbalance.check.interval.seconds": "5",
        }
        self.config = configure(settings, dict.fromkeys(settings, "--set"), hostname="here")

    # lives

    def start(self) -> None:
        assert self.life is None
        self.lives += 1
        self.life = Life(self, Process(f"{self.id}.{self.lives}"))
        self.loop.within(self.life.process, self.life.start())

    def crash(self, why: str) -> None:
        """kill -9: what was written stays."""
        life, self.life = self.life, None
        if life is None:
            return
        self.referee.note(f"node {self.id} ends: {why}")
        life.process.alive = False
        life.disk.is_gone = True
        streams, self.streams = self.streams, []
        for stream in streams:
            stream.process_ended()
        for other in self.network.nodes.values():
            if other is not self and not self.network.is_cut(self.id, other.id):
                wait = self.random.random() * GONE_SECONDS_MAX
                self.loop.later(wait, self.network.deliver, other, other.hear_gone, self.id)

    def end_in_write(self) -> None:
        if self.loses_power:
            self.lose_power()
        else:
            self.crash("killed in the middle of a write")

    def lose_power(self) -> None:
        self.power_lost, self.loses_power = True, False
        self.crash("power loss")
        self.platter.lose_power()

    # what arrives

    def hear_quorum(self, message: Message) -> None:
        if self.life is not None and self.life.hears:
            self.life.quorum.driver.receive(message)

    def hear_gone(self, node_id: int) -> None:
        if self.life is not None and self.life.hears:
            self.life.quorum.driver.leader_gone(node_id)
            self.life.watch.process_gone(node_id)

    def serve_stream(self, stream: SimStream) -> None:
        life = self.life
        if life is None or life.host is None or not life.replicates:
            stream.close()
        else:
            stream.serve(life)
            self.loop.within(life.process, life.host.serve_follower(stream))

    def control_methods(self) -> dict[str, Any]:
        return self.life.control.methods() if self.life is not None and self.life.hears else {}


class Life:
    def __init__(self, node: SimNode, process: Process) -> None:
        self.node = node
        self.process = process
        self.hears = self.replicates = self.serves = False
        self.host: ReplicaHost | None = None
        random = Random(node.random.getrandbits(64))
        self.threads = VirtualThreads(node.loop, random)
        clock = SkewedClock(node.loop, offset_ms=random.randint(-2000, 2000), rate=1 + random.uniform(-0.01, 0.01))
        self.disk = SimDisk(node.platter, now_ms=clock.wall_ms, on_crash=node.end_in_write)
        self.system = System(clock=clock, disk=self.disk, random=random, threads=self.threads)

    async def start(self) -> None:
        try:
            await self._start_quorum()
            await self._start_broker()
            self.serves = True
            self.node.referee.note(f"node {self.node.id} serves")
        except Refusal as refusal:
            self.fail(refusal)

    def fail(self, reason: Refusal) -> None:
        """What a real node does when it cannot go on: it stops."""
        self.node.referee.refused(self.node.id, reason, expected=self.disk.fail_syncs)
        if self.disk.fail_syncs:
            self.node.lose_power()  # nobody knows which pages the failed sync has dropped
        else:
            self.node.crash(str(reason))

    async def _start_quorum(self) -> None:
        node, config = self.node, self.node.config
        self.foundation = Foundation(
            config,
            self.system,
            on_lost=self._logs_lost,
            on_all_lost=lambda: self.fail(Refusal("no log dir is left")),
        )
        member = Member(node.id, self.foundation.directory_id)
        self.quorum = QuorumPart(
            config,
            self.system,
            cluster_id=self.foundation.cluster_id,
            member=member,
            transport=QuorumLink(node.network, node),
            on_failure=self.fail,
        )
        self._observe()
        parts: dict[str, Any] = {
            "feed": self.quorum.feed,
            "driver": self.quorum.driver,
            "address_of": address_of,
        }
        self.watch = BrokerWatch(
            controller=self.quorum.controller,
            feed=self.quorum.feed,
            system=self.system,
            session_timeout_s=config["broker.session.timeout.ms"] / 1000,
        )
        self.quorum.live_brokers = lambda: self.watch.alive
        self.control = ControlService(controller=self.quorum.controller, watch=self.watch, **parts)
        channels: Any = SimChannels(node.network, node)
        self.controller = Forwarding(
            local=self.quorum.controller, watch=self.watch, channels=channels, clock=self.system.clock, **parts
        )
        await self.quorum.start()
        self.hears = True
        self.watch.start()
        Rounds(self.quorum.controller, self.quorum.settings.broker).start()
        await self.quorum.driver.until_leader_known()

    def _observe(self) -> None:
        apply, referee, node = self.quorum.feed.apply, self.node.referee, self.node

        def observed(entries: Sequence[Entry]) -> None:
            referee.entries_applied(node.id, entries)
            apply(entries)

        self.quorum.feed.apply = observed  # type: ignore[method-assign]

    async def _start_broker(self) -> None:
        node, quorum, directories = self.node, self.quorum, self.foundation.directories
        load_all()
        membership = FleetMembership(
            RegisterBroker(
                id=node.id,
                incarnation=self.system.new_uuid(),
                cluster_id=self.foundation.cluster_id,
                listeners=[Listener("PLAINTEXT", "localhost", 9092)],
                grpc_host=address_of(node.id).partition(":")[0],
                grpc_port=1,
                log_dirs=[one.meta.directory_id for one in directories.online if one.meta],
                features=SUPPORTED_FEATURES,
                previous_epoch=directories.clean_epoch(),
            ),
            self.controller,
            feed=quorum.feed,
            config=node.config,
            system=self.system,
            on_failure=self.fail,
        )
        self.membership = membership
        await membership.register()
        host = ReplicaHost(
            node_id=node.id,
            system=self.system,
            directories=directories,
            settings=quorum.settings,
            worker=InlineWorker(),
        )
        self.host = host
        await directories.open_all(quorum.settings.log)
        image = quorum.feed.image
        directories.reconcile({(t.name, p.index): t.id for t in image.topics.values() for p in t.partitions})
        host.start(image)
        quorum.feed.subscribe(host.image_moved)
        await host.create_missing()
        cleaner = Cleaner(
            directories, worker=InlineWorker(), system=self.system, stable_offset=lambda key: 0, keys_max=1000
        )
        self.replicates = True
        host.start_following(connect=connector(node.network, node), controller=self.controller)
        await membership.enter()
        await host.settled()
        Upkeep(host=host, settings=quorum.settings, system=self.system, cleaner=cleaner).start()

    def _logs_lost(self, lost: Sequence[TopicPartition]) -> None:
        if self.host is not None:
            self.host.logs_lost(lost)
