"""The operator's way to the brokers of a secured cluster: real gRPC, its own certificate, and one that changes."""

import asyncio
from pathlib import Path

import pytest
from ottla.pb import control_pb2 as pb
from ottla.rpc.control import unary
from ottla.rpc.credentials import WatchedCredentials, of_node
from ottla.rpc.gate import Context
from ottla.rpc.securing import TLS, RpcSecurity
from ottla.rpc.server import RpcServer
from ottla_operator.brokers.fleet import Fleet, FleetUnavailable
from support.fleet_certificates import Authority, put


async def describe(request: pb.DescribeFleetRequest, context: Context) -> pb.DescribeFleetReply:
    return pb.DescribeFleetReply(leader=1)


def test_a_secured_cluster_answers_the_operator_by_its_certificate_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla_operator.brokers.fleet.PAUSE_SECONDS", 0.05)
    authority, following = Authority(tmp_path / "pki"), Authority(tmp_path / "following")
    both = tmp_path / "both.crt"
    both.write_bytes(authority.ca.read_bytes() + following.ca.read_bytes())
    own = authority.issue("operator", "ottla")._replace(ca=both).in_broker()
    node = authority.issue("broker", "1")

    async def scene() -> None:
        theirs = WatchedCredentials(node.in_broker(), of_node(1, is_broker=True))
        server = RpcServer("127.0.0.1", 0, security=RpcSecurity(TLS, frozenset({TLS}), theirs))
        server.add("ottla.pb.Control", {"DescribeFleet": unary(describe, pb.DescribeFleetRequest)})
        await server.start()
        mine = WatchedCredentials(own)
        secured, plain = Fleet(mine), Fleet()
        try:
            for fleet in (secured, plain):
                await fleet.reach({1: f"127.0.0.1:{server.port}"})
            assert (await secured.describe()).leader == 1
            with pytest.raises(FleetUnavailable):
                await plain.describe()
            put(following.issue("operator", "ottla").keystore, Path(own.keystore))
            await mine.look()
            with pytest.raises(FleetUnavailable):
                await secured.describe()  # the brokers do not know that CA yet
            put(both, node.ca)
            await theirs.look()
            monkeypatch.setattr("ottla_operator.brokers.fleet.ATTEMPTS", 200)
            assert (await secured.describe()).leader == 1
        finally:
            await secured.close()
            await plain.close()
            await server.stop()

    asyncio.run(scene())
