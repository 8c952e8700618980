"""What a node has besides when it is one of several: quorum and control over gRPC, on the control loop."""

import logging
from collections.abc import Callable

from ottla.config import BrokerConfig
from ottla.metadata.runtime.rounds import Rounds
from ottla.metadata.runtime.watch import BrokerWatch
from ottla.node.quorum import QuorumPart, bracketed
from ottla.raft.core.messages import Member, Voters
from ottla.raft.voter_changes import VoterChanges
from ottla.rpc.channels import Channels
from ottla.rpc.control import SERVICE, ControlService
from ottla.rpc.forwarding import Forwarding
from ottla.rpc.greeting import Identity
from ottla.rpc.operating import Operations
from ottla.rpc.quorum import QuorumTransport
from ottla.rpc.securing import require_cluster, rpc_security
from ottla.rpc.server import RpcServer
from ottla.security.core.audit import AuditTrail
from ottla.system import System

__all__ = ["FleetPart", "bind_address", "place"]

log = logging.getLogger("ottla")

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
EVERY_ADDRESS = "[::]"


class FleetPart:
    """`host` and `port` are where others reach this node."""

    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        cluster_id: str,
        member: Member,
        seed: Voters,
    ) -> None:
        self._config = config
        self._system = system
        self.host, port = place(config)
        security = rpc_security(config)
        self.credentials = security.credentials
        require_cluster(security, cluster_id)
        self.server = RpcServer(bind_address(self.host), port, security=security, cluster_id=cluster_id)
        self.port = self.server.port
        self.channels = Channels(security.for_channels)
        self._gone: list[Callable[[int], None]] = []
        identity = Identity(
            cluster_id=cluster_id,
            member=member,
            incarnation=system.new_uuid(),
            endpoint=f"{self.host}:{self.port}",
        )
        self.transport = QuorumTransport(
            identity,
            channels=self.channels,
            seed=seed,
            on_gone=self._process_gone,
            threads=system.threads,
        )

    def audit_to(self, trail: AuditTrail) -> None:
        self.server.audit_to(trail)

    def attach(self, quorum: QuorumPart) -> None:
        """Before the quorum starts."""
        self.watch = BrokerWatch(
            controller=quorum.controller,
            feed=quorum.feed,
            system=self._system,
            session_timeout_s=self._config["broker.session.timeout.ms"] / 1000,
        )
        quorum.live_brokers = lambda: self.watch.alive
        voters = VoterChanges(quorum.driver, address_of=self.transport.address_of, clock=self._system.clock)
        self.controller = Forwarding(
            local=quorum.controller,
            watch=self.watch,
            voters=voters,
            driver=quorum.driver,
            feed=quorum.feed,
            channels=self.channels,
            address_of=self.transport.address_of,
            clock=self._system.clock,
        )
        self._control = ControlService(
            controller=quorum.controller,
            watch=self.watch,
            feed=quorum.feed,
            driver=quorum.driver,
            address_of=self.transport.address_of,
        )
        self._operations = Operations(
            self._control,
            voters=voters,
            isr_size_min_of=lambda topic: int(quorum.settings.topic(topic)["min.insync.replicas"]),
        )
        self._rounds = Rounds(quorum.controller, quorum.settings.broker)
        self._gone += [quorum.driver.leader_gone, self.watch.process_gone]

    async def start(self, quorum: QuorumPart) -> None:
        """After the quorum has read its log: from now on others are heard."""
        self.transport.attach(quorum.driver)
        self.transport.serve(self.server)
        self.server.add(SERVICE, {**self._control.methods(), **self._operations.methods()})
        await self.server.start()
        self.watch.start()
        self._rounds.start()
        log.info("node %d talks to others on %s:%d", self._config.node_id, self.host, self.port)

    async def stop(self) -> None:
        await self._rounds.stop()
        await self.watch.stop()
        await self.transport.close()
        await self.server.stop()
        await self.channels.close()

    def _process_gone(self, node_id: int) -> None:
        for told in self._gone:
            told(node_id)


def place(config: BrokerConfig) -> tuple[str, int]:
    """The own entry of controller.quorum.voters says where; without one, the host that clients are told."""
    own = next((voter for voter in config.voters if voter.id == config.node_id), None)
    given = "ottla.grpc.port" in config.explicit or own is None
    port = config["ottla.grpc.port"] if given or own is None else own.port
    if own is not None:
        return bracketed(own.host), port
    return bracketed(config.host), port


def bind_address(host: str) -> str:
    """For a server that is reached at `host`."""
    return host if host in LOOPBACK else EVERY_ADDRESS
