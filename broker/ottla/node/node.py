"""A node: puts the parts together, starts them in order, and stops them in the other order.

A broker alone is a fleet of one: the same quorum, controller and replica path as many.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.config import BrokerConfig
from ottla.errors import Refusal
from ottla.metadata.active import Controller
from ottla.metadata.commands import RegisterBroker
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.node.brokering import BrokerPart
from ottla.node.foundation import Foundation
from ottla.node.membership import FleetMembership, LoneMembership, Membership
from ottla.node.quorum import QuorumPart, seed_voters
from ottla.raft.messages import Member
from ottla.storage.folder_names import TopicPartition
from ottla.system import System

if TYPE_CHECKING:
    from ottla.node.fleet import FleetPart

__all__ = ["Node"]

NO_EPOCH = -1


def over_grpc(config: BrokerConfig, system: System, *, cluster_id: str, member: Member) -> "FleetPart":
    from ottla.node.fleet import FleetPart  # a broker alone does without gRPC

    return FleetPart(config, system, cluster_id=cluster_id, member=member)


class Node:
    """`failed` ends with the reason when the node cannot go on."""

    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        make_broker: Callable[[BrokerConfig, System], BrokerPart] = BrokerPart,
        make_fleet: "Callable[..., FleetPart]" = over_grpc,
    ) -> None:
        self.config = config
        self.system = system
        self._make_broker = make_broker
        self._make_fleet = make_fleet
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ports: dict[str, int] = {}
        self.cluster_id = ""
        self._foundation: Foundation | None = None
        self._broker: BrokerPart | None = None
        self._fleet: FleetPart | None = None
        self._quorum: QuorumPart | None = None
        self._membership: Membership | None = None
        self._phase = "starts"

    def not_serving(self) -> str | None:
        """Why clients are not served here, None when they are."""
        if self._phase:
            return f"node {self.config.node_id} {self._phase}"
        assert self._quorum is not None
        if self._broker is not None and not self._quorum.feed.image.is_active(self.config.node_id):
            return f"broker {self.config.node_id} is fenced"
        return None

    async def start(self) -> None:
        """What was started is stopped again when something fails or the start is cancelled."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        seed_voters(self.config)  # what does not fit together is refused before anything is touched
        if "broker" in self.config.roles:
            self._broker = self._make_broker(self.config, self.system)
            self.ports = self._broker.ports
        foundation = self._foundation = Foundation(
            self.config, self.system, on_lost=self._logs_lost, on_all_lost=self._all_logs_lost
        )
        self.cluster_id = foundation.cluster_id
        quorum = await self._start_quorum(Member(self.config.node_id, foundation.directory_id))
        if self._broker is not None:
            await self._start_broker(self._broker, foundation, quorum)
        self._phase = ""

    async def _start_quorum(self, member: Member) -> QuorumPart:
        if _is_one_of_several(self.config):
            self._fleet = self._make_fleet(self.config, self.system, cluster_id=self.cluster_id, member=member)
        quorum = self._quorum = QuorumPart(
            self.config,
            self.system,
            cluster_id=self.cluster_id,
            member=member,
            transport=self._fleet.transport if self._fleet else None,
            on_failure=self._fail,
        )
        if self._fleet is not None:
            self._fleet.attach(quorum)
        await quorum.start()
        if self._fleet is not None:
            await self._fleet.start(quorum)
        await quorum.driver.until_leader_known()
        return quorum

    async def _start_broker(self, broker: BrokerPart, foundation: Foundation, quorum: QuorumPart) -> None:
        controller: Controller = self._fleet.controller if self._fleet else quorum.controller
        membership = self._membership = self._make_membership(broker, foundation, quorum)
        await membership.register()
        await broker.open(foundation, quorum)
        broker.replicas.report_losses(controller)
        if self._fleet is not None:
            self._fleet.replicate(broker.replicas)
        await membership.enter()
        await broker.replicas.settled()
        describe = self._fleet.controller.describe_quorum if self._fleet else quorum.describe
        asking = await broker.serve(
            quorum,
            controller,
            cluster_id=self.cluster_id,
            describe_quorum=describe,
            voters=self._fleet.controller if self._fleet else quorum.voters,
            call=self._fleet.ask_broker if self._fleet else None,
        )
        if self._fleet is not None:
            self._fleet.answer_brokers(asking)

    def _make_membership(self, broker: BrokerPart, foundation: Foundation, quorum: QuorumPart) -> Membership:
        registration = RegisterBroker(
            id=self.config.node_id,
            incarnation=self.system.new_uuid(),
            cluster_id=self.cluster_id,
            listeners=broker.advertised(),
            rack=self.config.rack,
            grpc_host=self._fleet.host if self._fleet else "",
            grpc_port=self._fleet.port if self._fleet else 0,
            log_dirs=[one.meta.directory_id for one in foundation.directories.online if one.meta],
            features=SUPPORTED_FEATURES,
            previous_epoch=foundation.directories.clean_epoch(),
        )
        if self._fleet is None:
            return LoneMembership(registration, quorum.controller)
        return FleetMembership(
            registration,
            self._fleet.controller,
            feed=quorum.feed,
            config=self.config,
            system=self.system,
            on_failure=self._fail,
        )

    # failing

    def _fail(self, reason: Refusal) -> None:
        if not self.failed.done():
            self.failed.set_exception(reason)

    def _logs_lost(self, lost: Sequence[TopicPartition]) -> None:
        if self._broker is not None:
            self._broker.logs_lost(lost)

    def _all_logs_lost(self) -> None:
        self._fail(Refusal("no log dir is left; see the lines above"))

    # stopping

    async def stop(self) -> None:
        """Leave cleanly: nothing led, no more clients, everything on the disk."""
        self._phase = "stops"
        if self._membership is not None:
            await self._membership.leave()
        if self._broker is not None:
            await self._broker.stop_serving()
        if self._quorum is not None:
            await self._quorum.stop()
        if self._fleet is not None:
            await self._fleet.stop()  # with the streams on which followers copy
        if self._broker is not None:
            await self._broker.close(self.broker_epoch)

    @property
    def broker_epoch(self) -> int:
        return self._membership.epoch if self._membership is not None else NO_EPOCH


def _is_one_of_several(config: BrokerConfig) -> bool:
    others_vote = any(voter.id != config.node_id for voter in config.voters)
    return others_vote or "broker" not in config.roles or "ottla.grpc.port" in config.explicit
