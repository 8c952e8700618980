"""Transactions between brokers over gRPC: markers to partition leaders, questions to coordinators."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import msgspec

from ottla.rpc.channels import Channels
from ottla.rpc.server import RpcServer
from ottla.txn.exchange import Call, Exchange, Unreachable

__all__ = ["caller", "serve"]

SERVICE = "ottla.pb.Transactions"
CALL_SECONDS_MAX = 40.0  # longer than a leader waits for its replicas


def serve(server: RpcServer, exchange: Exchange) -> None:
    methods = {name: grpc.unary_unary_rpc_method_handler(_handler(one)) for name, one in exchange.answers().items()}
    server.add(SERVICE, methods)


def _handler(answer: Callable[[bytes], Awaitable[bytes]]) -> Any:
    async def handle(data: bytes, context: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
        try:
            return await answer(data)
        except msgspec.DecodeError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    return handle


def caller(channels: Channels) -> Call:
    """How this broker asks others."""

    async def call(address: str, method: str, data: bytes) -> bytes:
        ask = channels.to(address).unary_unary(f"/{SERVICE}/{method}", None, None)
        try:
            answer = await ask(data, timeout=CALL_SECONDS_MAX)
        except grpc.aio.AioRpcError as error:
            raise Unreachable(f"{address}: {error.details()}") from error
        except asyncio.InvalidStateError as error:  # the channel was closed
            raise Unreachable(f"{address}: {error}") from error
        assert isinstance(answer, bytes)
        return answer

    return call
