"""The metadata quorum over gRPC: sends what the Raft driver says, hands it what others say.

One stream to each peer and one from each; both begin with a hello, and a node that does not belong here is refused
with a line in both logs.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio

from ottla.pb import quorum_pb2 as pb
from ottla.raft.driver import RaftDriver
from ottla.raft.messages import Member, Message, Voters
from ottla.raft.quorum import find
from ottla.rpc.channels import Channels
from ottla.rpc.greeting import Identity, common_version, member_of, refusal
from ottla.rpc.quorum_messages import decode, snapshot_of
from ottla.rpc.quorum_peer import Peer
from ottla.rpc.server import RpcServer

__all__ = ["QuorumTransport"]

log = logging.getLogger("ottla.quorum")

SNAPSHOT_BYTES_MAX = 2 << 30
REFUSALS_NOTED_MAX = 100


class QuorumTransport:
    """`seed` tells where voters are until the log does; `on_gone` hears of nodes whose process ended."""

    def __init__(self, own: Identity, *, channels: Channels, seed: Voters, on_gone: Callable[[int], None]) -> None:
        self._own = own
        self._channels = channels
        self._seed = seed
        self._on_gone = on_gone
        self._driver: RaftDriver | None = None
        self._peers: dict[int, Peer] = {}
        self._told: dict[int, str] = {}  # addresses by hello and hint, newer than the log's
        self._refused: dict[str, str] = {}  # endpoints and why
        self._connected: dict[int, list[bytes]] = {}  # incarnations of nodes that have streams to us

    def attach(self, driver: RaftDriver) -> None:
        self._driver = driver

    def serve(self, server: RpcServer) -> None:
        server.add(
            "ottla.pb.Quorum",
            {
                "Exchange": grpc.stream_stream_rpc_method_handler(
                    self._exchange, pb.QuorumFrame.FromString, pb.Welcome.SerializeToString
                ),
                "SendSnapshot": grpc.stream_unary_rpc_method_handler(
                    self._take_snapshot, pb.SnapshotFrame.FromString, pb.Welcome.SerializeToString
                ),
            },
        )

    async def close(self) -> None:
        peers, self._peers = self._peers, {}
        for peer in peers.values():
            await peer.close()

    # out

    def send(self, message: Message) -> None:
        peer = self._peers.get(message.target)
        if peer is None:
            peer = self._peers[message.target] = Peer(
                message.target,
                own=self._own,
                channels=self._channels,
                address_of=self.address_of,
                on_gone=self._on_gone,
            )
        peer.send(message)

    def address_of(self, node_id: int) -> str:
        """host:port of the node's gRPC server; empty when it is not known."""
        if node_id == self._own.member.id:
            return self._own.endpoint
        if node_id in self._told:
            return self._told[node_id]
        known = find(self._driver.raft.log.voters, node_id) if self._driver is not None else None
        known = known if known is not None and known.endpoint else find(self._seed, node_id)
        return known.endpoint if known is not None else ""

    # in

    async def _exchange(
        self, frames: AsyncIterator[pb.QuorumFrame], context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> AsyncIterator[pb.Welcome]:
        hello = (await anext(frames, pb.QuorumFrame())).hello
        yield await self._welcome(hello, context)
        source = member_of(hello)
        with self._connection(hello):
            async for frame in frames:
                try:
                    self._take(frame.message, source)
                except ValueError as error:
                    log.error("node %d at %s sent what this version cannot read: %s", source.id, hello.endpoint, error)
                    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    def _take(self, received: pb.QuorumMessage, source: Member) -> None:
        if received.WhichOneof("kind") == "leader_hint":
            self._learn(received.leader_hint.leader, received.leader_hint.endpoint)
        message = decode(received, source=source, target=self._own.member.id)
        if message is not None and self._driver is not None:
            self._driver.receive(message)

    async def _welcome(self, hello: pb.Hello, context: "grpc.aio.ServicerContext[Any, Any]") -> pb.Welcome:
        connected = {node: incarnations[-1] for node, incarnations in self._connected.items()}
        problem = refusal(hello, self._own, connected)
        if problem is not None:
            self._note_refusal(hello.endpoint, problem)
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION, f"refused by node {self._own.member.id}: {problem}"
            )
        self._refused.pop(hello.endpoint, None)
        self._learn(hello.node_id, hello.endpoint)
        return pb.Welcome(version=common_version(self._own.versions, (hello.version_min, hello.version_max)) or 0)

    def _note_refusal(self, endpoint: str, problem: str) -> None:
        """It will knock again and again: a line when something changed."""
        if self._refused.get(endpoint) != problem and len(self._refused) < REFUSALS_NOTED_MAX:
            self._refused[endpoint] = problem
            log.error("refused: %s", problem)

    @contextmanager
    def _connection(self, hello: pb.Hello) -> Any:
        streams = self._connected.setdefault(hello.node_id, [])
        streams.append(hello.incarnation)
        try:
            yield
        finally:
            streams.remove(hello.incarnation)
            if not streams:
                self._connected.pop(hello.node_id, None)

    def _learn(self, node_id: int, endpoint: str) -> None:
        if endpoint and node_id != self._own.member.id:
            self._told[node_id] = endpoint

    async def _take_snapshot(
        self, frames: AsyncIterator[pb.SnapshotFrame], context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> pb.Welcome:
        hello = (await anext(frames, pb.SnapshotFrame())).hello
        welcome = await self._welcome(hello, context)
        head = (await anext(frames, pb.SnapshotFrame())).head
        parts: list[bytes] = []
        received = 0
        async for frame in frames:
            received += len(frame.data)
            if received > min(head.size, SNAPSHOT_BYTES_MAX):
                break
            parts.append(frame.data)
        if received != head.size:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{received} bytes of a snapshot of {head.size}")
        if self._driver is not None:
            source = member_of(hello)
            self._driver.receive(snapshot_of(head, b"".join(parts), source=source, target=self._own.member.id))
        return welcome
