"""This node's part of the metadata quorum: the log, the image it builds, and the controller when this node leads."""

import asyncio
import logging
from collections.abc import Callable, Sequence, Set
from typing import TypeVar

from google.protobuf.message import DecodeError

from ottla.config import BrokerConfig
from ottla.errors import Refusal
from ottla.metadata.decisions.commands import Command, Context
from ottla.metadata.model.records import Record, decode_batch
from ottla.metadata.runtime.active import ActiveController
from ottla.metadata.runtime.feed import MetadataMachine
from ottla.node.context import make_context
from ottla.ports import Clock
from ottla.raft.bootstrap import read_bootstrap
from ottla.raft.core.messages import Member, Voter, Voters
from ottla.raft.core.raft import RaftConfig
from ottla.raft.driver import QuorumState, RaftDriver, SnapshotLimits, Transport
from ottla.raft.store import RaftStore
from ottla.raft.voter_changes import VoterChanges
from ottla.replica.settings import LiveSettings
from ottla.system import System

__all__ = ["QuorumPart", "bracketed", "seed_voters"]

log = logging.getLogger("ottla")

Reply = TypeVar("Reply")

HAND_OVER_SECONDS_MAX = 1.0
HEARTBEATS_PER_TIMEOUT = 8


def seed_voters(config: BrokerConfig) -> Voters:
    """The voters of an empty metadata log by the settings; one that has entries knows its own."""
    named = tuple(Voter(v.id, endpoint=f"{bracketed(v.host)}:{v.port}") for v in config.voters)
    votes = any(voter.id == config.node_id for voter in named)
    if named and votes != ("controller" in config.roles):
        problem = "has not the role controller, but is among" if votes else "has the role controller, but is not among"
        voters = config.explicit["controller.quorum.voters"]
        raise Refusal(f"node {config.node_id} {problem} controller.quorum.voters={voters}")
    if not named and "controller" not in config.roles and not config.quorum_servers:
        raise Refusal(
            "a broker without the role controller needs controller.quorum.voters, or the addresses of other nodes in "
            "controller.quorum.bootstrap.servers, to find the quorum"
        )
    return named or (Voter(config.node_id),)


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class QuorumPart:
    """`live_brokers` tells whose sessions are alive, when this node is the controller. On the control loop."""

    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        cluster_id: str,
        member: Member,
        seed: Voters,
        transport: Transport | None,
        on_failure: Callable[[Refusal], None],
    ) -> None:
        self._config = config
        self._on_failure = on_failure
        self._seed = seed
        self._started = False
        self.live_brokers: Callable[[], Set[int]] = frozenset
        self.feed = MetadataMachine(cluster_id)
        self.driver = RaftDriver(
            _raft_config(config, member),
            store=RaftStore(system.disk, config.metadata_log_dir),
            system=system,
            machine=self.feed,
            unreadable=self.feed.unreadable,
            unreadable_snapshot=self.feed.unreadable_snapshot,
            seed=self._seed,
            transport=transport,
            snapshot_limits=SnapshotLimits(bytes_max=config["metadata.log.max.record.bytes.between.snapshots"]),
        )
        self._bootstrap = _bootstrap_records(system, config)
        self.settings = LiveSettings(config, config.node_id, lambda: self.feed.image)
        self.controller = ActiveController(
            feed=self.feed, driver=self.driver, system=system, node_id=config.node_id, context=self._context
        )
        self.alone = LoneController(self.controller, self.driver, system.clock)

    def _context(self, **facts: object) -> Context:
        return make_context(self.settings, live_brokers=self.live_brokers(), bootstrap=self._bootstrap, **facts)

    async def start(self) -> None:
        await self.driver.start()
        self._started = True
        self.driver.closed.add_done_callback(self._closed)
        self._warn_of_other_voters()

    def _warn_of_other_voters(self) -> None:
        if self._config.quorum_servers:
            return
        log_says = {(voter.id, voter.endpoint) for voter in self.driver.raft.log.voters}
        if log_says != {(voter.id, voter.endpoint) for voter in self._seed}:
            voters = ", ".join(f"{node}@{endpoint}" for node, endpoint in sorted(log_says))
            log.warning("controller.quorum.voters differs from the metadata log, which has %s and prevails", voters)

    def _closed(self, closed: "asyncio.Future[None]") -> None:
        error = closed.exception()
        if error is not None:
            self._on_failure(Refusal(f"the metadata log cannot be written: {error}"))

    async def stop(self) -> None:
        """A leader hands over first, so that nobody has to find out."""
        if not self._started:
            return
        if self.driver.leads and len(self.driver.raft.log.voters) > 1:
            self.driver.hand_over()
            try:
                async with asyncio.timeout(HAND_OVER_SECONDS_MAX):
                    await self.driver.until_another_leads()
            except TimeoutError:
                log.warning("no other voter took over the quorum")
        await self.driver.stop()


class LoneController:
    """The controller of a broker alone, as a node of a fleet has it in `Forwarding`."""

    def __init__(self, controller: ActiveController, driver: RaftDriver, clock: Clock) -> None:
        self._controller = controller
        self._driver = driver
        self._voters = VoterChanges(driver, address_of=None, clock=clock)

    async def submit(self, command: Command[Reply]) -> Reply:
        return await self._controller.submit(command)

    async def describe_quorum(self) -> QuorumState:
        return self._driver.describe()

    async def add_voter(self, asked: Member, *, seconds: float) -> None:
        await self._voters.add_voter(asked, seconds=seconds)

    async def remove_voter(self, asked: Member, *, seconds: float) -> None:
        await self._voters.remove_voter(asked, seconds=seconds)


def _bootstrap_records(system: System, config: BrokerConfig) -> Sequence[Record]:
    try:
        return decode_batch(read_bootstrap(system.disk, config.metadata_log_dir))
    except DecodeError as error:
        raise Refusal(f"what {config.metadata_log_dir} was formatted with cannot be read: {error}") from None


def _raft_config(config: BrokerConfig, member: Member) -> RaftConfig:
    leader_timeout_s = config["controller.quorum.fetch.timeout.ms"] / 1000
    return RaftConfig(
        member=member,
        election_timeout_s=config["controller.quorum.election.timeout.ms"] / 1000,
        leader_timeout_s=leader_timeout_s,
        heartbeat_s=leader_timeout_s / HEARTBEATS_PER_TIMEOUT,
    )
