"""What brokers ask each other, over gRPC: markers to partition leaders, questions to coordinators."""

import asyncio
from typing import Any

import grpc
import grpc.aio
import msgspec

from ottla.coordination.asking import Answer, Asking, Call, Unreachable
from ottla.rpc.channels import Channels
from ottla.rpc.server import RpcServer

__all__ = ["caller", "serve"]

SERVICE = "ottla.pb.Transactions"  # brokers of earlier versions, which asked about nothing else, know it by this name
CALL_SECONDS_MAX = 40.0  # longer than a leader waits for its replicas


def serve(server: RpcServer, asking: Asking) -> None:
    methods = {name: grpc.unary_unary_rpc_method_handler(_handler(one)) for name, one in asking.answers.items()}
    server.add(SERVICE, methods)


def _handler(answer: Answer) -> Any:
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
