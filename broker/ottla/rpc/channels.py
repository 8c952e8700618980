"""Channels to other nodes, by address: made when first used, kept while the address is in use.

A channel belongs to the loop that made it, so each loop of a node has channels of its own.
"""

import asyncio

import grpc
import grpc.aio

from ottla.rpc.server import ANSWER_BYTES_MAX, ASKED_BYTES_MAX

__all__ = ["Channels"]

OPTIONS = (
    ("grpc.max_receive_message_length", ANSWER_BYTES_MAX),
    ("grpc.max_send_message_length", ASKED_BYTES_MAX),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),  # a restarted pod has a new address
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class Channels:
    def __init__(self) -> None:
        self._open: dict[str, grpc.aio.Channel] = {}
        self._closing: dict[str, asyncio.Future[None]] = {}

    def to(self, address: str) -> grpc.aio.Channel:
        """`address` is host:port of the node's gRPC server."""
        channel = self._open.get(address)
        if channel is None:
            channel = self._open[address] = grpc.aio.insecure_channel(address, options=OPTIONS)
        return channel

    def forget(self, address: str) -> None:
        """Nobody is there any more: what is under way on the channel fails."""
        channel = self._open.pop(address, None)
        if channel is not None:
            closing = self._closing[address] = asyncio.ensure_future(channel.close(None))
            closing.add_done_callback(lambda _: self._closing.pop(address, None))

    async def close(self) -> None:
        open_channels, self._open = self._open, {}
        for channel in open_channels.values():
            await channel.close(None)
