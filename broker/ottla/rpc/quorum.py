"""The metadata quorum over gRPC: sends what the Raft driver says, hands it what others say.

One stream to each peer and one from each; both begin with a hello, and a node that does not belong here is refused
with a line in both logs.
"""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Any

import grpc
import grpc.aio

from ottla.pb import quorum_pb2 as pb
from ottla.raft.core.messages import Member, Message, Voters
from ottla.raft.core.quorum import find
from ottla.raft.driver import RaftDriver
from ottla.rpc.channels import Channels
from ottla.rpc.gate import require_node
from ottla.rpc.greeting import NAME_CHARACTERS_MAX, Identity, common_version, member_of, refusal
from ottla.rpc.quorum_messages import decode, snapshot_of
from ottla.rpc.quorum_peer import Peer
from ottla.rpc.server import RpcServer
from ottla.system import Threads, give_free_memory_back

__all__ = ["QuorumTransport"]

log = logging.getLogger("ottla.quorum")

SNAPSHOT_BYTES_MAX = 512 << 20  # several million partitions; it is in memory as a whole
MANY_BYTES = 8 << 20  # of a message or a snapshot: more than the allocator needs to keep when it is gone
REFUSALS_NOTED_MAX = 100
ADDRESSES_ANNOUNCED_MAX = 10_000
SETTLE_SECONDS = 1.0


class QuorumTransport:
    """`seed` has the addresses of voters until the log does; `on_gone` is called with nodes whose process ended."""

    def __init__(
        self,
        own: Identity,
        *,
        channels: Channels,
        seed: Voters,
        on_gone: Callable[[int], None],
        threads: Threads,
    ) -> None:
        self._own = own
        self._channels = channels
        self._threads = threads
        self._seed = seed
        self._on_gone = on_gone
        self._driver: RaftDriver | None = None
        self._peers: dict[int, Peer] = {}
        self._announced: dict[int, str] = {}  # addresses by hello and hint, newer than the log's
        self._refused: dict[str, str] = {}  # endpoints and why
        self._connected: dict[int, list[bytes]] = {}  # incarnations of nodes that have streams to us
        self._arriving: list[bytes] = []  # parts of the snapshot that comes in; a later one takes its place
        self._settling: asyncio.TimerHandle | None = None
        self._settle_again = False

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
        if self._settling is not None:
            self._settling.cancel()
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
        if node_id in self._announced:
            return self._announced[node_id]
        known = find(self._driver.raft.log.voters, node_id) if self._driver is not None else None
        known = known if known is not None and known.endpoint else find(self._seed, node_id)
        return known.endpoint if known is not None else ""

    # in

    async def _exchange(
        self, frames: AsyncIterator[pb.QuorumFrame], context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> AsyncIterator[pb.Welcome]:
        hello = self._hello_in(await anext(frames, pb.QuorumFrame()))
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
        message = decode(received, source=source, target=self._own.member.id)
        if message is None or self._driver is None:
            return
        if received.WhichOneof("kind") == "leader_hint" and self._driver.raft.may_hint(source):
            self._learn(received.leader_hint.leader, received.leader_hint.endpoint)
        self._driver.receive(message)

    def _hello_in(self, first: pb.QuorumFrame | pb.SnapshotFrame) -> pb.Hello:
        """A copy, since a part keeps the whole message in memory, however large."""
        self._settle_memory(first.ByteSize())
        return pb.Hello.FromString(first.hello.SerializeToString())

    async def _welcome(self, hello: pb.Hello, context: "grpc.aio.ServicerContext[Any, Any]") -> pb.Welcome:
        require_node(context, hello.node_id)
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
        """It will try again and again: one line whenever the reason changes."""
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
        is_plausible = 0 < len(endpoint) <= NAME_CHARACTERS_MAX and len(self._announced) < ADDRESSES_ANNOUNCED_MAX
        if is_plausible and node_id != self._own.member.id:
            self._announced[node_id] = endpoint

    async def _take_snapshot(
        self, frames: AsyncIterator[pb.SnapshotFrame], context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> pb.Welcome:
        hello = self._hello_in(await anext(frames, pb.SnapshotFrame()))
        welcome = await self._welcome(hello, context)
        source = member_of(hello)
        head = (await anext(frames, pb.SnapshotFrame())).head
        if self._driver is None or not self._driver.raft.may_lead(source, head.message_term):
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"node {source.id} is not known to be a voter")
        if head.size > SNAPSHOT_BYTES_MAX:
            text = f"a snapshot of {head.size} bytes; this version takes {SNAPSHOT_BYTES_MAX}"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        data = await self._snapshot_data(frames, head.size)
        if len(data) != head.size:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{len(data)} bytes of a snapshot of {head.size}")
        self._driver.receive(snapshot_of(head, data, source=source, target=self._own.member.id))
        return welcome

    async def _snapshot_data(self, frames: AsyncIterator[pb.SnapshotFrame], size: int) -> bytes:
        """At most one part more than `size`. One snapshot at a time: the sender of an earlier one may be frozen."""
        self._arriving.clear()
        parts = self._arriving = []
        received = 0
        try:
            async for frame in frames:
                if parts is not self._arriving:
                    return b""
                received += len(frame.data)
                parts.append(frame.data)
                if received > size:
                    break
            return b"".join(parts)
        finally:
            parts.clear()
            self._settle_memory(received)

    def _settle_memory(self, used_bytes: int) -> None:
        """Soon, when what was used is free; again for what comes until then."""
        if used_bytes < MANY_BYTES:
            return
        if self._settling is not None:
            self._settle_again = True
        else:
            self._settling = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._give_memory_back)

    def _give_memory_back(self) -> None:
        gc.collect(1)  # a call of gRPC that was refused is a cycle, and its message is part of it
        self._threads.run(give_free_memory_back)
        self._settling = None
        if self._settle_again:
            self._settle_again = False
            self._settle_memory(MANY_BYTES)
