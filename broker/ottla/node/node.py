"""A node: puts the parts together, starts them in order, and stops them in the other order.

A broker alone is a fleet of one: the same quorum, controller and replica path as many. The node itself lives on the
control loop, and has on the data loop what `DataPart` says.
"""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.config import BrokerConfig
from ottla.errors import Refusal
from ottla.handover import Handover
from ottla.metadata.decisions.commands import RegisterBroker
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.relay import ControllerLink, FeedRelay
from ottla.node import data, metering
from ottla.node.authorizing import audit_file_of
from ottla.node.brokering import BrokerPart
from ottla.node.data import DataPart
from ottla.node.foundation import Foundation
from ottla.node.membership import FleetMembership, LoneMembership, Membership
from ottla.node.quorum import QuorumPart, seed_voters
from ottla.raft.core.messages import Member, Voters
from ottla.security.audit import AuditFiles
from ottla.security.core.audit import AuditTrail, NoTrail
from ottla.storage.core.names import TopicPartition
from ottla.system import System, Threads
from ottla.telemetry.meters import Read

if TYPE_CHECKING:
    from ottla.node.fleet import FleetPart
    from ottla.node.peers import PeersPart

__all__ = ["DataLoopStuck", "Node"]

log = logging.getLogger("ottla")

NO_EPOCH = -1
# How old the data loop's pulse may be: clients are served; the process is alive; a stop waits for it.
READY_PULSE_SECONDS_MAX = 1.5
ALIVE_PULSE_SECONDS_MAX = 60.0
STOP_PULSE_SECONDS_MAX = 10.0
PULSE_LOOK_SECONDS = 0.5


def over_grpc(config: BrokerConfig, system: System, **who: Any) -> "FleetPart":
    from ottla.node.fleet import FleetPart  # a broker alone does without gRPC

    return FleetPart(config, system, **who)


class DataLoopStuck(Exception):
    """The node stopped without its data loop, which did not turn: its logs were not closed."""


class Node:
    """`failed` ends with the reason when the node cannot go on.

    Without a `handover` both lanes are on the running loop. `control_threads` are those of the metadata log: life signs
    do not wait for what the data path reads.
    """

    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        handover: Handover | None = None,
        control_threads: Threads | None = None,
        make_broker: Callable[[BrokerConfig, System], BrokerPart] = BrokerPart,
        make_fleet: "Callable[..., FleetPart]" = over_grpc,
        make_peers: "Callable[[BrokerConfig], PeersPart]" = data.over_grpc,
    ) -> None:
        self.config = config
        self.system = system
        self.handover = handover or Handover.on_one_loop(system.clock)
        self._control_system = dataclasses.replace(system, threads=control_threads or system.threads)
        self._make_broker = make_broker
        self._make_fleet = make_fleet
        self._make_peers = make_peers
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ports: dict[str, int] = {}
        self.cluster_id = ""
        self._data: DataPart | None = None
        self._fleet: FleetPart | None = None
        self._quorum: QuorumPart | None = None
        self._membership: Membership | None = None
        self._trail: AuditFiles | None = None
        self._phase = "starts"

    # how it is

    def not_serving(self) -> str | None:
        """Why clients are not served here, None when they are."""
        if self._phase:
            return f"node {self.config.node_id} {self._phase}"
        assert self._quorum is not None
        if self._data is not None and not self._quorum.feed.image.is_active(self.config.node_id):
            return f"broker {self.config.node_id} is fenced"
        return self._stuck(READY_PULSE_SECONDS_MAX)

    def not_alive(self) -> str | None:
        """Why this process should be ended by force, None when it should not."""
        return self._stuck(ALIVE_PULSE_SECONDS_MAX)

    def _stuck(self, seconds_max: float) -> str | None:
        age_s = self.handover.pulse.age_s()
        if self._data is None or age_s <= seconds_max:
            return None
        return f"the data loop of broker {self.config.node_id} has not turned for {age_s:.1f} s"

    def readings(self) -> dict[str, Read]:
        """What its parts tell of themselves in numbers; only of those that are there by now."""
        told = metering.of_quorum(self._quorum) if self._quorum is not None and not self._phase else {}
        if self._data is not None and self._quorum is not None and not self._phase:
            feed = self._quorum.feed
            told |= metering.of_broker(self._data.broker, node_id=self.config.node_id, image=lambda: feed.image)
        if self._fleet is not None and not self._phase:
            peers = self._data.peers if self._data is not None else None
            told = metering.together(told, metering.of_grpc(self._fleet, peers))
        return told

    # starting

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
            await self.handover.on_data(self._make_data)
        foundation = Foundation(self.config, self.system, on_lost=self._logs_lost, on_all_lost=self._all_logs_lost)
        self.cluster_id = foundation.cluster_id
        quorum = await self._start_quorum(Member(self.config.node_id, foundation.directory_id))
        if self._data is not None:
            await self._start_broker(self._data, foundation, quorum)
        self._phase = ""

    async def _make_data(self) -> None:
        """On the data loop."""
        data_part = self._data = DataPart(
            self.config,
            self.system,
            handover=self.handover,
            make_broker=self._make_broker,
            make_peers=self._make_peers if _is_one_of_several(self.config) else None,
        )
        self.ports = data_part.broker.ports

    async def _start_quorum(self, member: Member) -> QuorumPart:
        seed = await self._seed()
        if _is_one_of_several(self.config):
            self._fleet = self._make_fleet(
                self.config, self._control_system, cluster_id=self.cluster_id, member=member, seed=seed
            )
            self._fleet.audit_to(self._data.broker.trail if self._data is not None else self._open_trail())
        quorum = self._quorum = QuorumPart(
            self.config,
            self._control_system,
            cluster_id=self.cluster_id,
            member=member,
            seed=seed,
            transport=self._fleet.transport if self._fleet else None,
            on_failure=self._fail,
        )
        if self._data is not None:
            self._data.feed = MetadataFeed(self.cluster_id)
            FeedRelay(self.handover, machine=quorum.feed, feed=self._data.feed)
        if self._fleet is not None:
            self._fleet.attach(quorum)
        await quorum.start()
        if self._fleet is not None:
            await self._fleet.start(quorum)
        await quorum.driver.until_leader_known()
        return quorum

    async def _seed(self) -> Voters:
        """By the settings; a node that joins a fleet asks for it, once."""
        if not self.config.quorum_servers:
            return seed_voters(self.config)
        from ottla.node.joining import voters_to_join

        return await voters_to_join(self.config, self._control_system, cluster_id=self.cluster_id)

    def _open_trail(self) -> AuditTrail:
        """Of a node that is no broker."""
        self._trail = audit_file_of(self.config, self.system)
        return self._trail if self._trail is not None else NoTrail()

    async def _start_broker(self, data_part: DataPart, foundation: Foundation, quorum: QuorumPart) -> None:
        """The data loop hears of an image before it hears of anything that was asked on account of it."""
        controller = ControllerLink(
            self.handover,
            far=self._fleet.controller if self._fleet else quorum.alone,
            machine=quorum.feed,
            feed=data_part.feed,
        )
        membership = self._membership = self._make_membership(data_part, foundation, quorum)
        await membership.register()
        await self.handover.on_data(lambda: data_part.open(foundation, controller))
        await membership.enter()
        await self.handover.on_data(lambda: data_part.serve(self.cluster_id))

    def _make_membership(self, data_part: DataPart, foundation: Foundation, quorum: QuorumPart) -> Membership:
        registration = RegisterBroker(
            id=self.config.node_id,
            incarnation=self.system.new_uuid(),
            cluster_id=self.cluster_id,
            listeners=data_part.broker.advertised(),
            rack=self.config.rack,
            grpc_host=self._fleet.host if self._fleet else "",
            grpc_port=data_part.peers.port if data_part.peers else 0,
            control_port=self._fleet.port if self._fleet else 0,
            log_dirs=[one.meta.directory_id for one in foundation.directories.online if one.meta],
            features=SUPPORTED_FEATURES,
            previous_epoch=foundation.directories.clean_epoch(),
        )
        if self._fleet is None:
            return LoneMembership(registration, quorum.controller, feed=quorum.feed)
        return FleetMembership(
            registration,
            self._fleet.controller,
            feed=quorum.feed,
            pulse=self.handover.pulse,
            config=self.config,
            system=self.system,
            on_failure=self._fail,
        )

    # failing

    def _fail(self, reason: Refusal) -> None:
        if not self.failed.done():
            self.failed.set_exception(reason)

    def _logs_lost(self, lost: Sequence[TopicPartition]) -> None:
        """On the data loop, or before it has logs."""
        if self._data is not None:
            self._data.logs_lost(lost)

    def _all_logs_lost(self) -> None:
        self.handover.control.post(self._fail, Refusal("no log dir is left; see the lines above"))

    # stopping

    async def stop(self) -> None:
        """Leave cleanly: nothing led, no more clients, everything on the disk.

        A data loop that does not turn is waited for until its pulse is STOP_PULSE_SECONDS_MAX old. The rest stops
        without it, and DataLoopStuck is raised then.
        """
        self._phase = "stops"
        if self._membership is not None:
            await self._membership.leave()
        stuck = await self._stop_data(lambda part: part.stop_serving())
        if self._quorum is not None:
            await self._quorum.stop()
        if self._fleet is not None:
            await self._fleet.stop()
        if self._trail is not None:
            self._trail.close()
        stuck = stuck or await self._stop_data(lambda part: part.close(self.broker_epoch))
        if stuck:
            raise DataLoopStuck(f"the data loop has not turned for {self.handover.pulse.age_s():.0f} s")

    async def _stop_data(self, work: Callable[[DataPart], Awaitable[None]]) -> bool:
        """Whether the data loop is stuck."""
        part = self._data
        if part is None:
            return False
        task = asyncio.ensure_future(self.handover.on_data(lambda: work(part)))
        while not task.done():
            await asyncio.wait([task], timeout=PULSE_LOOK_SECONDS)
            if not task.done() and self.handover.pulse.age_s() > STOP_PULSE_SECONDS_MAX:
                task.cancel()
                return True
        task.result()
        return False

    @property
    def broker_epoch(self) -> int:
        return self._membership.epoch if self._membership is not None else NO_EPOCH


def _is_one_of_several(config: BrokerConfig) -> bool:
    others_vote = any(voter.id != config.node_id for voter in config.voters)
    joins = bool(config.quorum_servers)
    return others_vote or joins or "broker" not in config.roles or "ottla.grpc.port" in config.explicit
