"""The data loop's way to other brokers of a fleet: they copy from this one and ask it at a port of its own.

Its address is in the broker's registration.
"""

import logging

from ottla.config import BrokerConfig
from ottla.coordination.asking import Asking, Call
from ottla.metadata.model.changes import Changes
from ottla.metadata.model.image import Image
from ottla.node.fleet import bind_address, place
from ottla.replica.host import ReplicaHost
from ottla.replica.isr_changes import Controller
from ottla.rpc import questions, replication
from ottla.rpc.channels import Channels
from ottla.rpc.securing import rpc_security
from ottla.rpc.server import RpcServer
from ottla.security.core.audit import AuditTrail

__all__ = ["PeersPart"]

log = logging.getLogger("ottla")

SETTING = "ottla.replication.port"


class PeersPart:
    """`host` and `port` are where other brokers reach this one."""

    def __init__(self, config: BrokerConfig) -> None:
        self.host, _ = place(config)
        security = rpc_security(config)
        self.credentials = security.credentials
        self.server = RpcServer(bind_address(self.host), config[SETTING], setting=SETTING, security=security)
        self.port = self.server.port
        self.channels = Channels(security.for_channels)

    def audit_to(self, trail: AuditTrail) -> None:
        self.server.audit_to(trail)

    async def replicate(self, replicas: ReplicaHost, controller: Controller) -> None:
        """When the logs are open: others may copy from this broker, and it copies from others."""
        replication.serve(self.server, replicas)
        await self.server.start()
        replicas.start_following(connect=replication.connector(self.channels), controller=controller)

    @property
    def ask_broker(self) -> Call:
        return questions.caller(self.channels)

    def answer_brokers(self, asking: Asking) -> None:
        """Others may now ask this broker."""
        questions.serve(self.server, asking)

    def image_moved(self, old: Image, new: Image, changes: Changes) -> None:
        """Subscriber of the metadata feed: a broker that came back may have another address."""
        for broker_id in changes.brokers:
            before, after = old.brokers.get(broker_id), new.brokers.get(broker_id)
            if before is not None and (after is None or after.peer_address != before.peer_address):
                self.channels.forget(before.peer_address)

    async def stop(self) -> None:
        await self.server.stop()
        await self.channels.close()
