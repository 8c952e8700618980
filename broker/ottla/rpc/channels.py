"""Channels to other nodes, by address: made when first used, kept while the address is in use.

A channel belongs to the loop that made it, so each loop of a node has channels of its own. With a new certificate of
this node come new channels, for new calls; what is under way on the old ones goes on there to its end.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from ottla.rpc.server import ANSWER_BYTES_MAX, ASKED_BYTES_MAX

if TYPE_CHECKING:
    from ottla.rpc.credentials import Credentials, WatchedCredentials

__all__ = ["OPTIONS", "Channels", "secured"]

OLD_CALLS_SECONDS_MAX = 30 * 24 * 3600.0  # a stream between nodes has no end of its own

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


# How long an attempt to connect may take at least: a handshake is Python's on one side, whose loop may be busy.
HANDSHAKE_OPTIONS = (("grpc.min_reconnect_backoff_ms", 1_000),)


def secured(address: str, credentials: "Credentials") -> grpc.aio.Channel:
    """To a node of the cluster, whichever address it has: the name in its certificate says that it is one."""
    others = (option for option in OPTIONS if option[0] not in dict(HANDSHAKE_OPTIONS))
    options = (*others, *HANDSHAKE_OPTIONS, ("grpc.ssl_target_name_override", credentials.peer_name))
    return grpc.aio.secure_channel(address, credentials.for_channel(), options=options)


class Channels:
    """Without `credentials` they are plaintext."""

    def __init__(self, credentials: "WatchedCredentials | None" = None) -> None:
        self._credentials = credentials
        self._made_with: Credentials | None = None
        self._open: dict[str, grpc.aio.Channel] = {}
        self._retired: dict[grpc.aio.Channel, tuple[str, asyncio.Future[None]]] = {}
        self._closing: dict[str, asyncio.Future[None]] = {}

    def to(self, address: str) -> grpc.aio.Channel:
        """`address` is host:port of the node's gRPC server."""
        if self._credentials is not None and self._credentials.current is not self._made_with:
            self._made_with = self._credentials.current
            self._retire()
        channel = self._open.get(address)
        if channel is None:
            channel = self._open[address] = self._make(address)
        return channel

    def forget(self, address: str) -> None:
        """Nobody is there any more: what is under way on the channel fails."""
        channel = self._open.pop(address, None)
        gone = [retired for retired, (where, _) in self._retired.items() if where == address]
        for one in (*gone, *([channel] if channel is not None else [])):
            closing = self._closing[address] = asyncio.ensure_future(one.close(None))
            closing.add_done_callback(lambda _: self._closing.pop(address, None))

    async def close(self) -> None:
        open_channels, self._open = self._open, {}
        for channel in (*open_channels.values(), *self._retired):
            await channel.close(None)

    def _make(self, address: str) -> grpc.aio.Channel:
        if self._made_with is None:
            return grpc.aio.insecure_channel(address, options=OPTIONS)
        return secured(address, self._made_with)

    def _retire(self) -> None:
        """Closed when the last call on them has ended."""
        old, self._open = self._open, {}
        for address, channel in old.items():
            ending = asyncio.ensure_future(channel.close(OLD_CALLS_SECONDS_MAX))
            self._retired[channel] = (address, ending)
            ending.add_done_callback(partial(self._forget_retired, channel))

    def _forget_retired(self, channel: grpc.aio.Channel, _: object) -> None:
        self._retired.pop(channel, None)
