"""A node that joins a fleet asks real gRPC servers for the voters."""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec
import pytest
from ottla.config import BrokerConfig
from ottla.config.broker import configure
from ottla.errors import Refusal
from ottla.node.joining import seed_from, voters_to_join
from ottla.pb import control_pb2 as pb
from ottla.raft.core.messages import ANY_DIRECTORY, Voter
from ottla.raft.driver import QuorumState
from ottla.raft.store import RaftStore
from ottla.rpc.control import SERVICE, unary
from ottla.rpc.gate import Context
from ottla.rpc.leader_search import LEADER_ADDRESS_KEY
from ottla.rpc.securing import OPEN, RpcSecurity, rpc_security
from ottla.rpc.server import RpcServer
from ottla.system import System
from support.fleet_certificates import CLUSTER_ID, OTHER_CLUSTER_ID, Authority
from support.nodes import until
from support.ports import free_port

DIRECTORY = uuid.UUID(int=7)
VOTERS = tuple(Voter(node, DIRECTORY, f"h:{node}") for node in (1, 2))
NEW = 5


def state(*voters: Voter, leader: int = 1) -> QuorumState:
    return QuorumState(leader, 1, 1, (), (), voters)


class FleetNode:
    """Answers DescribeQuorum, or names the leader."""

    def __init__(
        self, port: int = 0, *, leader: str = "", cluster_id: str = CLUSTER_ID, security: RpcSecurity = OPEN
    ) -> None:
        self._leader, self._cluster_id = leader, cluster_id
        self.server = RpcServer("127.0.0.1", port, security=security, cluster_id=cluster_id)
        self.server.add(SERVICE, {"DescribeQuorum": unary(self._describe, pb.DescribeQuorumRequest)})
        self.address = f"127.0.0.1:{self.server.port}"

    async def _describe(self, _: pb.DescribeQuorumRequest, context: Context) -> pb.DescribeQuorumReply:
        if self._leader:
            context.set_trailing_metadata(((LEADER_ADDRESS_KEY, self._leader),))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this node is not the active controller")
        packed = msgspec.msgpack.encode(state(*VOTERS))
        return pb.DescribeQuorumReply(state=packed, cluster_id=self._cluster_id)


@asynccontextmanager
async def serving(*nodes: FleetNode) -> AsyncIterator[None]:
    for node in nodes:
        await node.server.start()
    try:
        yield
    finally:
        for node in nodes:
            await node.server.stop()


def run(scene: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await scene

    asyncio.run(bounded())


def config(folder: Path, *servers: str, **more: str) -> BrokerConfig:
    given = {
        "node.id": str(NEW),
        "log.dirs": str(folder),
        "process.roles": "broker",
        "controller.quorum.bootstrap.servers": ",".join(servers),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return configure(given, dict.fromkeys(given, "--set"))


async def ask(configured: BrokerConfig) -> Any:
    return await voters_to_join(configured, System(), cluster_id=CLUSTER_ID)


def dead() -> str:
    return f"127.0.0.1:{free_port()}"


def test_any_of_the_addresses_leads_to_the_voters(tmp_path: Path) -> None:
    async def scene() -> None:
        leader = FleetNode()
        follower = FleetNode(leader=leader.address)
        async with serving(leader, follower):
            assert await ask(config(tmp_path, dead(), follower.address)) == VOTERS

    run(scene())


def test_it_goes_on_asking_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        port = free_port()
        asking = asyncio.ensure_future(ask(config(tmp_path, f"127.0.0.1:{port}")))
        await until(lambda: caplog.records, "a line that nobody answers")
        async with serving(FleetNode(port)):
            assert await asking == VOTERS
        assert f"no node knows the voters yet (127.0.0.1:{port}: " in caplog.text

    caplog.set_level(logging.WARNING, "ottla")
    run(scene())
    assert len(caplog.records) == 1


def test_a_node_that_has_metadata_asks_nobody(tmp_path: Path) -> None:
    """Not even a node that is there: they may all be starting."""
    configured = config(tmp_path, dead())
    system = System()
    store = RaftStore(system.disk, configured.metadata_log_dir)
    assert store.stored_seed() is None
    store.load(VOTERS)
    store.close()
    run(_known(configured))


async def _known(configured: BrokerConfig) -> None:
    assert await ask(configured) == VOTERS


def test_a_fleet_of_another_cluster_is_refused_by_both_ids(tmp_path: Path) -> None:
    async def scene() -> None:
        node = FleetNode(cluster_id=OTHER_CLUSTER_ID)
        async with serving(node):
            sentence = f"{node.address} belongs to cluster {OTHER_CLUSTER_ID}, node {NEW} to cluster {CLUSTER_ID}"
            with pytest.raises(Refusal, match=sentence):
                await ask(config(tmp_path, node.address))

    run(scene())


def test_a_server_of_other_services_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        server = RpcServer("127.0.0.1", 0)
        await server.start()
        try:
            with pytest.raises(Refusal, match=r"is no ottla\.grpc\.port, though it speaks gRPC"):
                await ask(config(tmp_path, f"127.0.0.1:{server.port}"))
        finally:
            await server.stop()

    run(scene())


def secured(folder: Path, authority: Authority, role: str, *, node: int = NEW, server: str = "x:1") -> BrokerConfig:
    files = authority.issue(role, str(node))
    tls = {
        "ottla_grpc_protocol": "TLS",
        "ottla_grpc_ssl_keystore_location": str(files.keystore),
        "ottla_grpc_ssl_truststore_location": str(files.ca),
    }
    return config(folder, server, node_id=str(node), process_roles=role, **tls)


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_nodes_of_both_roles_may_ask_by_tls(tmp_path: Path, role: str) -> None:
    async def scene() -> None:
        authority = Authority(tmp_path / "pki")
        node = FleetNode(security=rpc_security(secured(tmp_path, authority, "broker", node=1)))
        async with serving(node):
            assert await ask(secured(tmp_path, authority, role, server=node.address)) == VOTERS

    run(scene())


def test_by_tls_only_a_certificate_of_the_cluster_gets_an_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        theirs = Authority(tmp_path / "pki", OTHER_CLUSTER_ID)
        configured = secured(tmp_path, theirs, "broker")
        with pytest.raises(Refusal, match=f"of cluster {OTHER_CLUSTER_ID}, this node belongs to {CLUSTER_ID}"):
            await ask(configured)

    run(scene())


def test_the_seed_leaves_the_new_node_out_and_knows_where_a_leader_without_an_address_is() -> None:
    """It has no vote until the metadata log says so, also where it had one and lost its disk."""
    seen = state(Voter(1, DIRECTORY), Voter(NEW, ANY_DIRECTORY, "h:5"), VOTERS[1])
    expected = (Voter(1, DIRECTORY, "asked:1"), VOTERS[1])
    assert seed_from(seen, own_id=NEW, leader_address="asked:1") == expected
