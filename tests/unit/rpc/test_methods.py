"""A node's own services over TLS: every method by every role, and who may speak for whom."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from ottla.metadata.decisions.commands import (
    AllocateProducerIds,
    AlterPartition,
    Command,
    FenceBroker,
    RegisterBroker,
    ReplicasLost,
    RotateScramCredentials,
    UnfenceBroker,
)
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.pb import control_pb2 as pb
from ottla.pb import quorum_pb2
from ottla.rpc.channels import secured
from ottla.rpc.credentials import read_credentials
from ottla.rpc.packing import pack_command
from ottla.rpc.roles import CLUSTER_KEY, METHODS
from ottla.rpc.server import RpcServer
from ottla.security.core.identities import ROLES
from ottla.wire import replication as frames
from support.fleet_certificates import Authority, now
from support.nodes import CLUSTER_ID, InnerNode
from support.ports import free_port

SECONDS = 5.0
STREAMS = {"Exchange", "SendSnapshot", "Copy"}
CLUSTER = ((CLUSTER_KEY, CLUSTER_ID),)
OTHER = 2


class SecuredNode:
    """Node 1, alone, with its ports open over TLS. `methods` are those that it serves, with the port of each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.authority = Authority(folder / "pki", CLUSTER_ID)
        own = self.authority.issue("broker", "1")
        self.methods: dict[str, int] = {}
        self.node = InnerNode(
            folder,
            1,
            **{
                "cluster.id": CLUSTER_ID,
                "ottla.grpc.port": str(free_port()),
                "ottla.grpc.protocol": "TLS",
                "ottla.grpc.ssl.keystore.location": str(own.keystore),
                "ottla.grpc.ssl.truststore.location": str(own.ca),
            },
        )
        add, methods = RpcServer.add, self.methods

        def noted(server: RpcServer, service: str, handlers: dict[str, Any]) -> None:
            methods.update({f"/{service}/{name}": server.port for name in handlers})
            add(server, service, handlers)

        monkeypatch.setattr(RpcServer, "add", noted)

    async def __aenter__(self) -> "SecuredNode":
        await self.node.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.node.stop()

    def channel(self, role: str, name: str, method: str) -> grpc.aio.Channel:
        files = self.authority.issue(role, name)
        return secured(f"127.0.0.1:{self.methods[method]}", read_credentials(files.in_broker(), now()))


async def outcome(channel: grpc.aio.Channel, method: str, first: bytes = b"") -> grpc.StatusCode:
    """Of a call; one that waits for more was let in."""
    try:
        if method.rpartition("/")[2] in STREAMS:
            stream = channel.stream_stream(method)(metadata=CLUSTER, timeout=SECONDS)
            try:
                await stream.write(first)
            except grpc.aio.AioRpcError:
                # It ended before it had the frame; gRPC's client tells of the write instead. Ask without one.
                stream = channel.stream_stream(method)(metadata=CLUSTER, timeout=SECONDS)
            await stream.read()
            stream.cancel()
        else:
            await channel.unary_unary(method)(first, metadata=CLUSTER, timeout=SECONDS)
    except grpc.aio.AioRpcError as error:
        return error.code()
    except asyncio.InvalidStateError:  # it ended while the first frame was written
        return await stream.code()
    return grpc.StatusCode.OK


def test_every_method_of_a_node_is_for_its_roles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        async with SecuredNode(tmp_path, monkeypatch) as node:
            services = {method.rpartition("/")[0] for method in node.methods}
            assert services == {method.rpartition("/")[0] for method in METHODS}
            for role in ROLES:
                ports = {port: method for method, port in node.methods.items()}
                channels = {port: node.channel(role, str(OTHER), method) for port, method in ports.items()}
                for method, port in node.methods.items():
                    allowed = METHODS.get(method) or METHODS[f"{method.rpartition('/')[0]}/*"]
                    # What was let in says to be nobody, which a node is told in its own words.
                    first = hello_of(OTHER, method) if method.rpartition("/")[2] in STREAMS else b""
                    if method.endswith("Heartbeat"):
                        first = pb.HeartbeatRequest(broker=OTHER).SerializeToString()
                    seen = await outcome(channels[port], method, first)
                    assert (seen is grpc.StatusCode.PERMISSION_DENIED) is (role not in allowed), (role, method, seen)
                for channel in channels.values():
                    await channel.close(None)

    asyncio.run(scene())


def hello_of(node: int, method: str) -> bytes:
    if method.endswith("Copy"):
        return frames.encode(frames.Hello(CLUSTER_ID, node, 1))
    hello = quorum_pb2.Hello(cluster_id=CLUSTER_ID, node_id=node, directory=bytes(16), incarnation=bytes(16))
    frame = quorum_pb2.SnapshotFrame if method.endswith("SendSnapshot") else quorum_pb2.QuorumFrame
    return bytes(frame(hello=hello).SerializeToString())


def commands_of(broker: int) -> list[Command[Any]]:
    registration = RegisterBroker(
        broker, uuid.uuid4(), CLUSTER_ID, [], log_dirs=[uuid.uuid4()], features=SUPPORTED_FEATURES
    )
    return [
        registration,
        FenceBroker(broker, 0),
        UnfenceBroker(broker, 0),
        AllocateProducerIds(broker, 0),
        AlterPartition(broker, 0, []),
        ReplicasLost(broker, 0, []),
    ]


def submit(command: Command[Any]) -> bytes:
    name, data = pack_command(command)
    return bytes(pb.SubmitRequest(type=name, command=data).SerializeToString())


def test_no_node_rotates_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by the command either that RotateScram gives to the controller."""

    async def scene() -> None:
        async with SecuredNode(tmp_path, monkeypatch) as node:
            method, asked = "/ottla.pb.Control/Submit", submit(RotateScramCredentials([], 0))
            for role in ("broker", "controller"):
                channel = node.channel(role, str(OTHER), method)
                assert await outcome(channel, method, asked) is grpc.StatusCode.PERMISSION_DENIED
                await channel.close(None)

    asyncio.run(scene())


def test_a_node_cannot_say_to_be_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Node 2 by its certificate, in the name of node 1 or 3, and in its own."""

    async def scene() -> None:
        async with SecuredNode(tmp_path, monkeypatch) as node:
            control = "/ottla.pb.Control/"
            for said in (1, 3, OTHER):
                first = [(f"{control}Submit", submit(command)) for command in commands_of(said)]
                beat = pb.HeartbeatRequest(broker=said)
                first.append((f"{control}Heartbeat", beat.SerializeToString()))
                first += [
                    (method, hello_of(said, method)) for method in node.methods if method.endswith(tuple(STREAMS))
                ]
                for method, data in first:
                    channel = node.channel("broker", str(OTHER), method)
                    denied = await outcome(channel, method, data) is grpc.StatusCode.PERMISSION_DENIED
                    assert denied is (said != OTHER), (said, method)
                    await channel.close(None)

    asyncio.run(scene())


def test_no_command_names_a_speaker_in_a_way_that_is_not_checked() -> None:
    """A new command that has a broker's epoch speaks for that broker: `_speaker_of` must know it."""
    from ottla.metadata.decisions import commands

    epochs = {"epoch", "broker_epoch", "incarnation"}
    speak = {
        one.__name__
        for one in vars(commands).values()
        if isinstance(one, type)
        and issubclass(one, Command)
        and one is not Command
        and epochs & set(one.__struct_fields__)
    }
    assert speak == {type(command).__name__ for command in commands_of(1)}
