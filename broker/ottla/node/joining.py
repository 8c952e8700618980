"""How a node that is to join a fleet finds the voters (KIP-853): by asking controller.quorum.bootstrap.servers.

Only a node that has never had metadata asks. One that has knows the voters itself: the nodes of a fleet that starts as
a whole must not wait for each other.
"""

import asyncio
import logging
from itertools import islice

import grpc
import grpc.aio
import msgspec

from ottla.config import BrokerConfig
from ottla.errors import Refusal
from ottla.pb import control_pb2 as pb
from ottla.pb.control_pb2_grpc import ControlStub
from ottla.raft.core.messages import Voters
from ottla.raft.driver import QuorumState
from ottla.raft.store import RaftStore
from ottla.rpc.channels import Channels
from ottla.rpc.leader_search import LEADER_ADDRESS_KEY, LeaderSearch, named_leader
from ottla.rpc.probing import answers_as_kafka
from ottla.rpc.securing import require_cluster, rpc_security
from ottla.system import System

__all__ = ["seed_from", "voters_to_join"]

log = logging.getLogger("ottla")

SETTING = "controller.quorum.bootstrap.servers"
ANSWER_SECONDS_MAX = 2.0
PAUSE_SECONDS = 0.5
LINE_SECONDS = 5.0  # between lines in the log
REASON_CHARACTERS_MAX = 200
NOT_ADMITTED = (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED)


async def voters_to_join(config: BrokerConfig, system: System, *, cluster_id: str) -> Voters:
    """Waits until a node of the fleet answers. Refusal where no waiting helps."""
    store = RaftStore(system.disk, config.metadata_log_dir)
    try:
        known = await system.threads.run(store.stored_seed)
    except OSError as error:
        raise Refusal(f"the metadata log in {store.folder} cannot be used: {error}") from error
    return known if known is not None else await _Search(config, system, cluster_id).voters()


class _Search:
    def __init__(self, config: BrokerConfig, system: System, cluster_id: str) -> None:
        self._config = config
        self._clock = system.clock
        self._cluster_id = cluster_id
        security = rpc_security(config)
        require_cluster(security, cluster_id)
        self._credentials = security.credentials
        self._channels = Channels(security.for_channels)

    async def voters(self) -> Voters:
        try:
            return await self._until_found()
        finally:
            await self._channels.close()

    async def _until_found(self) -> Voters:
        line_at = self._clock.monotonic()
        while True:
            problems: list[str] = []
            if (found := await self._ask_each(problems)) is not None:
                return found
            if self._clock.monotonic() >= line_at:
                line_at = self._clock.monotonic() + LINE_SECONDS
                log.warning(
                    "%s: no node knows the voters yet (%s). This node goes on asking; to begin a new fleet, set "
                    "controller.quorum.voters",
                    SETTING,
                    "; ".join(problems),
                )
            await asyncio.sleep(PAUSE_SECONDS)
            if self._credentials is not None:
                await self._credentials.look()

    async def _ask_each(self, problems: list[str]) -> Voters | None:
        """A node that does not lead names the one that does, which is asked next."""
        addresses = self._config.quorum_servers
        search = LeaderSearch(addresses)
        for address in islice(search, 2 * len(addresses)):
            try:
                return await self._ask(address)
            except grpc.aio.AioRpcError as error:
                problems.append(f"{address}: {_reason(error)}")
                await self._refuse_if_hopeless(address, error)
                if leader := named_leader(error.trailing_metadata(), LEADER_ADDRESS_KEY):
                    search.ask_first(leader)
            except msgspec.DecodeError as error:
                problems.append(f"{address}: its answer cannot be read: {error}"[:REASON_CHARACTERS_MAX])
        return None

    async def _ask(self, address: str) -> Voters:
        stub = ControlStub(self._channels.to(address))
        reply = await stub.DescribeQuorum(pb.DescribeQuorumRequest(), timeout=ANSWER_SECONDS_MAX)
        if reply.cluster_id not in ("", self._cluster_id):  # of a version that does not say it, the hello decides
            raise Refusal(
                f"{SETTING}: {address} belongs to cluster {reply.cluster_id}, node {self._config.node_id} to cluster "
                f"{self._cluster_id}"
            )
        state = msgspec.msgpack.decode(reply.state, type=QuorumState)
        found = seed_from(state, own_id=self._config.node_id, leader_address=address)
        log.info("%s: %s names the voters %s", SETTING, address, ", ".join(f"{v.id}@{v.endpoint}" for v in found))
        return found

    async def _refuse_if_hopeless(self, address: str, error: grpc.aio.AioRpcError) -> None:
        code = error.code()
        if code in NOT_ADMITTED:
            who = f"node {self._config.node_id} of cluster {self._cluster_id}"
            raise Refusal(f"{SETTING}: {address} does not answer {who}: {_reason(error)}")
        if code is grpc.StatusCode.UNIMPLEMENTED:
            raise Refusal(f"{SETTING}: {address} is no ottla.grpc.port, though it speaks gRPC")
        if code is grpc.StatusCode.UNAVAILABLE and await answers_as_kafka(address):
            raise Refusal(f"{SETTING}: {address} is a port for Kafka clients; give the node's ottla.grpc.port")


def seed_from(state: QuorumState, *, own_id: int, leader_address: str) -> Voters:
    """The seed of a node that joins: without the node itself, which has no vote until the metadata log says so.

    A fleet that began as a broker alone has a voter without an address: it is the leader, which has just answered.
    """
    others = (voter for voter in state.voter_endpoints if voter.id != own_id)
    return tuple(
        msgspec.structs.replace(voter, endpoint=leader_address)
        if voter.id == state.leader_id and not voter.endpoint
        else voter
        for voter in others
    )


def _reason(error: grpc.aio.AioRpcError) -> str:
    return (error.details() or error.code().name)[:REASON_CHARACTERS_MAX]
