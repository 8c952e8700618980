"""The replication stream over gRPC: bytes in, bytes out, one stream per pair of brokers."""

import asyncio
from typing import Any

import grpc
import grpc.aio

from ottla.replica.host import ReplicaHost
from ottla.replica.streams import Connect, Stream, StreamLost
from ottla.rpc.channels import Channels
from ottla.rpc.gate import require_node
from ottla.rpc.server import RpcServer
from ottla.wire import replication as frames

__all__ = ["connector", "serve"]

SERVICE = "ottla.pb.Replication"
METHOD = "Copy"
# What gRPC raises on a call that has ended; BaseError comes when it ends in the middle of a write.
LOST = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)


class ServedStream:
    """The leader's end. Who the follower says to be in its hello must be whom its certificate says."""

    def __init__(self, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        self._context = context
        self._task = asyncio.current_task()
        self._is_greeted = False
        self.is_closed = False

    async def send(self, frame: bytes) -> None:
        try:
            await self._context.write(frame)
        except LOST as error:
            raise StreamLost(_reason(error)) from error

    async def receive(self) -> bytes | None:
        try:
            frame = await self._context.read()
        except LOST as error:
            raise StreamLost(_reason(error)) from error
        if not isinstance(frame, bytes):
            return None  # EOF
        if not self._is_greeted:
            self._is_greeted = True
            self._require_sender(frames.decode(frame))
        return frame

    def _require_sender(self, first: frames.Frame) -> None:
        if isinstance(first, frames.Hello):
            require_node(self._context, first.broker_id)

    def close(self) -> None:
        """Ends the handler, and with it the call."""
        if self._task is not None and self._task is not asyncio.current_task() and not self.is_closed:
            self._task.cancel()
        self.is_closed = True


class CalledStream:
    """The follower's end."""

    def __init__(self, call: "grpc.aio.StreamStreamCall[bytes, bytes]") -> None:
        self._call = call

    async def send(self, frame: bytes) -> None:
        try:
            await self._call.write(frame)
        except LOST as error:
            raise StreamLost(_reason(error)) from error
        except asyncio.CancelledError:
            self._raise_if_ended()
            raise

    async def receive(self) -> bytes | None:
        try:
            frame = await self._call.read()
        except LOST as error:
            raise StreamLost(_reason(error)) from error
        except asyncio.CancelledError:
            self._raise_if_ended()
            raise
        return frame if isinstance(frame, bytes) else None  # EOF

    def _raise_if_ended(self) -> None:
        """gRPC cancels whoever waits for a call that was closed; that is no wish to end the task."""
        task = asyncio.current_task()
        if self._call.cancelled() and task is not None and not task.cancelling():
            raise StreamLost("closed") from None

    def close(self) -> None:
        self._call.cancel()


def _reason(error: BaseException) -> str:
    details = error.details() if isinstance(error, grpc.aio.AioRpcError) else None
    return details or repr(error)


def serve(server: RpcServer, host: ReplicaHost) -> None:
    """Let other brokers copy from this one. Before the server starts."""

    async def copy(_: Any, context: "grpc.aio.ServicerContext[bytes, bytes]") -> None:
        stream = ServedStream(context)
        try:
            await host.serve_follower(stream)
        except asyncio.CancelledError:
            if not stream.is_closed:
                raise
            # A cancelled handler would leave the follower without an answer.
            await context.abort(grpc.StatusCode.UNAVAILABLE, "closed by the leader")

    server.add(SERVICE, {METHOD: grpc.stream_stream_rpc_method_handler(copy)})


def connector(channels: Channels) -> Connect:
    """How this broker reaches others, for `ReplicaHost.start_following`."""

    def connect(address: str) -> Stream:
        return CalledStream(channels.to(address).stream_stream(f"/{SERVICE}/{METHOD}", None, None)(None))

    return connect
