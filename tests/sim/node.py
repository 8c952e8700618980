"""A node of the simulated fleet: ottla.node's own Node, on simulated surroundings."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from ottla.api.binding import Handle
from ottla.api.call import Call
from ottla.api.client import Client
from ottla.api.registry import load_all
from ottla.config import configure
from ottla.errors import Refusal
from ottla.handover import Handover
from ottla.metadata.model.image import Image
from ottla.net.shared import Shared
from ottla.node import Node
from ottla.node.brokering import BrokerPart
from ottla.node.fleet import FleetPart
from ottla.node.node import DataLoopStuck
from ottla.node.peers import PeersPart
from ottla.node.quorum import QuorumPart
from ottla.raft.core.messages import Entry, Member, Message, Voters
from ottla.replica.host import ReplicaHost
from ottla.replica.isr_changes import Controller
from ottla.security.core.principals import ANONYMOUS
from ottla.storage.compaction import rewriting as compaction
from ottla.storage.workers.worker import InlineWorker
from ottla.system import System
from sim.disk import MORE, ROOT, Platter, SimDisk, Wrote
from sim.invariants import Referee
from sim.network import Network, SimChannels, SimStream, SimTransport, address_of, connector
from sim.virtual_loop import Process, SkewedClock, VirtualLane, VirtualLoop, VirtualThreads

__all__ = ["HERE", "Life", "SimNode"]

HERE = "here"  # where clients are
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
GONE_SECONDS_MAX = 0.2  # until others notice that a process has ended
STOP_SECONDS_MAX = 30.0
T = TypeVar("T")


class SimNode:
    """Over all its lives."""

    def __init__(
        self,
        node_id: int,
        *,
        voters: Sequence[int],
        network: Network,
        referee: Referee,
        random: Random,
        settings: Mapping[str, str],
        cleaning: bool = False,
    ) -> None:
        self.id = node_id
        self.cleaning = cleaning  # its worker takes time
        self.network = network
        self.referee = referee
        self.random = random
        self.loop: VirtualLoop = network.loop
        self.platter = Platter(Random(random.getrandbits(64)))
        self.life: Life | None = None
        self.clients = ANONYMOUS  # as whom clients ask its handlers
        self.streams: list[SimStream] = []
        self.lives = 0
        self.watch_disk: Wrote | None = None
        self.unclean = False  # its process was killed, and it is not in sync again since
        self.power_lost = False  # the same after a power loss
        self.loses_power = False  # at the end of the present life
        self.crashing: Life | None = None  # the life that ends, or ended, by one of these
        given = {
            "node.id": str(node_id),
            "log.dirs": f"{ROOT},{MORE}",
            "metadata.log.dir": ROOT,
            "cluster.id": CLUSTER_ID,
            "controller.quorum.voters": ",".join(f"{each}@{address_of(each)}" for each in voters),
            "process.roles": "broker,controller" if node_id in voters else "broker",
            "listeners": "PLAINTEXT://localhost:9092",
            "min.insync.replicas": "2",
            "default.replication.factor": "3",
            "replica.lag.time.max.ms": "4000",
            "replica.high.watermark.checkpoint.interval.ms": "2000",
            "metadata.log.max.record.bytes.between.snapshots": "3000",
            "leader.imbalance.check.interval.seconds": "5",
            **settings,
        }
        self.config = configure(given, dict.fromkeys(given, "--set"), hostname="here")

    # lives

    def start(self) -> None:
        assert self.life is None
        self.lives += 1
        self.platter.full.clear()
        self.life = Life(self, Process(f"{self.id}.{self.lives}"))
        self.loop.within(self.life.process, self.life.start())

    def stop(self) -> None:
        """As SIGTERM does it."""
        if self.life is not None and self.life.serves:
            self.referee.note(f"node {self.id} is asked to stop")
            self.life.serves, self.life.is_stopping = False, True
            self.loop.within(self.life.process, self.life.stop())
            self.loop.later(STOP_SECONDS_MAX, self._has_stopped, self.life)

    def _has_stopped(self, life: "Life") -> None:
        if self.life is life:
            self.referee.object(f"node {self.id} has not stopped within {STOP_SECONDS_MAX:.0f} s")

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
            self.life.fleet.process_gone(node_id)

    def serve_stream(self, stream: SimStream) -> None:
        life = self.life
        if life is None or not life.hears or life.host is None:
            stream.close()
        else:
            stream.serve(life)
            self.loop.within(life.process, life.host.serve_follower(stream), data=True)

    def control_methods(self) -> dict[str, Any]:
        return self.life.fleet.server.methods if self.life is not None and self.life.hears else {}

    def data_methods(self) -> dict[str, Any]:
        return self.life.peers.server.methods if self.life is not None and hasattr(self.life, "peers") else {}


class Life:
    """`hears` others, `serves` clients."""

    fleet: "SimFleet"
    peers: "SimPeers"
    shared: Shared | None = None  # while its listeners are open

    def __init__(self, node: SimNode, process: Process) -> None:
        self.node = node
        self.process = process
        self.serves = False
        self.is_stopping = False
        random = Random(node.random.getrandbits(64))
        self.threads = VirtualThreads(node.loop, random)
        clock = SkewedClock(node.loop, offset_ms=random.randint(-2000, 2000), rate=1 + random.uniform(-0.01, 0.01))
        self.disk = SimDisk(node.platter, now_ms=clock.wall_ms, on_crash=node.end_in_write)
        self.disk.watch = node.watch_disk
        self.system = System(clock=clock, disk=self.disk, random=random, threads=self.threads)

    @property
    def hears(self) -> bool:
        return hasattr(self, "fleet") and self.fleet.server.is_started

    @property
    def quorum(self) -> QuorumPart:
        return self.fleet.quorum

    @property
    def host(self) -> ReplicaHost | None:
        return self.peers.replicas if self.hears and hasattr(self, "peers") else None

    @property
    def controller(self) -> Any:
        """As its clients reach it."""
        assert self.running._data is not None
        return self.running._data._controller

    def coordinator(self, kind: str) -> Any:
        """Of "groups", "transactions" or "share_states"."""
        assert self.running._data is not None
        return getattr(self.running._data.broker._coordinators, kind)

    def handler(self, key: int, version: int) -> tuple[Handle, Call]:
        """The broker's own, and a call for it. While its listeners are open."""
        assert self.shared is not None
        client = Client("PLAINTEXT", HERE, principal=self.node.clients, authorizer=self.shared.authorizer)
        call = Call(self.shared.long_work, load_all()[key], version, 1, "sim", client)
        return self.shared.handlers[key], call

    @property
    def image(self) -> Image:
        """As its clients see it."""
        assert self.running._data is not None
        return self.running._data.feed.image

    @property
    def broker_epoch(self) -> int:
        return self.running.broker_epoch

    async def start(self) -> None:
        self.running = Node(
            self.node.config,
            self.system,
            handover=Handover(
                control=VirtualLane(self.node.loop, self.process, data=False),
                data=VirtualLane(self.node.loop, self.process, data=True),
                clock=self.system.clock,
            ),
            make_broker=lambda config, system: BrokerPart(
                config,
                system,
                make_listener=lambda *_: SimListener(self),  # type: ignore[arg-type,return-value]
                make_worker=(lambda: ThreadWorker(self.threads)) if self.node.cleaning else InlineWorker,
            ),
            make_fleet=lambda *arguments, **options: SimFleet(self, *arguments, **options),
            make_peers=lambda _: SimPeers(self),
        )
        self.running.failed.add_done_callback(lambda failed: self.fail(failed.exception()))
        try:
            await self.running.start()
            self.serves = True
            self.node.referee.note(f"node {self.node.id} serves")
        except Refusal as refusal:
            self.fail(refusal)
        except Exception as error:
            self.node.referee.object(f"node {self.node.id} does not start: {error!r}")
            raise

    async def stop(self) -> None:
        try:
            await self.running.stop()
        except DataLoopStuck as stuck:  # two holds, one after the other, may last longer than a stop waits
            self.node.crash(str(stuck))
        else:
            self.node.crash("stopped cleanly")

    def fail(self, reason: BaseException | None) -> None:
        """What a real node does when it cannot go on: it stops."""
        expected = self.disk.fail_syncs or bool(self.node.platter.full)
        self.node.referee.refused(self.node.id, reason, expected=expected)
        if self.disk.fail_syncs:
            self.node.lose_power()  # nobody knows which pages the failed sync has dropped
        else:
            self.node.crash(str(reason))


class ThreadWorker(InlineWorker):
    """Its jobs take time, in which the log may change. (They run as the real ones do: on files, by their names.)"""

    def __init__(self, threads: VirtualThreads) -> None:
        self._threads = threads
        self._indexed: Any = None

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        return await self._threads.run(self._as_a_process, function, *arguments)

    def _as_a_process(self, function: Callable[..., T], *arguments: object) -> T:
        """What the job before left in the module is of this worker alone."""
        compaction._indexed = self._indexed
        try:
            return function(*arguments)
        finally:
            self._indexed = compaction._indexed


class SimListener:
    def __init__(self, life: Life) -> None:
        (self.endpoint,) = life.node.config.listeners
        self._life = life

    def bind(self) -> int:
        return self.endpoint.port

    async def start(self, shared: Shared, security: Any = None) -> None:
        self._life.shared = shared

    async def stop(self) -> None:
        self._life.shared = None


class SimServer:
    def __init__(self) -> None:
        self.methods: dict[str, Any] = {}
        self.is_started = False

    def add(self, _: str, methods: dict[str, Any]) -> None:
        self.methods.update(methods)

    def audit_to(self, trail: Any) -> None:
        pass

    async def start(self) -> None:
        self.is_started = True

    async def stop(self) -> None:
        self.is_started = False


class SimFleet(FleetPart):
    """The wiring is FleetPart's own; server, channels and streams are simulated."""

    def __init__(
        self, life: Life, config: Any, system: System, *, cluster_id: str, member: Member, seed: Voters
    ) -> None:
        self.life = life
        self._config, self._system = config, system
        self.host, self.port = address_of(member.id).partition(":")[0], 1
        self.server: Any = SimServer()
        self.channels: Any = SimChannels(life.node.network, life.node)
        self.transport: Any = SimTransport(life.node.network, life.node)
        self._gone = []
        life.fleet = self

    def attach(self, quorum: QuorumPart) -> None:
        self.quorum = quorum
        apply, referee, node = quorum.feed.apply, self.life.node.referee, self.life.node

        def observed(entries: Sequence[Entry]) -> None:
            referee.entries_applied(node.id, entries)
            apply(entries)

        leadership = quorum.feed.leadership

        def on_leadership(*, leads: bool) -> None:
            if leads:
                referee.leads(node.id, quorum.driver.term)
            leadership(leads=leads)

        quorum.feed.apply, quorum.feed.leadership = observed, on_leadership  # type: ignore[method-assign]
        super().attach(quorum)

    def process_gone(self, node_id: int) -> None:
        self._process_gone(node_id)


class SimPeers(PeersPart):
    """The same of PeersPart."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.host, self.port = address_of(life.node.id).partition(":")[0], 1
        self.server: Any = SimServer()
        self.channels: Any = SimChannels(life.node.network, life.node)
        self.replicas: ReplicaHost | None = None
        life.peers = self

    async def replicate(self, replicas: ReplicaHost, controller: Controller) -> None:
        self.replicas = replicas
        replicas.start_following(connect=connector(self.life.node.network, self.life.node), controller=controller)
