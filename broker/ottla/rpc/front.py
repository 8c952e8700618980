"""One port for plaintext and TLS, while a fleet goes from one to the other.

The first byte of a connection tells which it is: gRPC has no way to take both, so two listeners of its own wait behind
this one, and bytes are copied between. They have abstract names of this machine's network, which nobody outside can
reach, and take nothing that the port itself would not take.
"""

import asyncio
import itertools
import os
import secrets
import socket
from typing import cast

from ottla.errors import Refusal

__all__ = ["Front"]

TLS_RECORD, HTTP2_PREFACE = 0x16, ord("P")
FIRST_BYTE_SECONDS_MAX = 10.0
WAITING_MAX = 1000  # connections that have said nothing yet; more are closed
BACKLOG = 511
GRPC_PREFIX = "unix-abstract:"


class Front:
    """Bound when made, so that `port` is known; connections wait until `start`."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = _bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        stem = f"ottla-{os.getpid()}-{secrets.token_hex(8)}"
        self._behind = {TLS_RECORD: f"{stem}-tls", HTTP2_PREFACE: f"{stem}-plain"}
        self._stem = stem
        self._numbers = itertools.count(1)
        self._hosts: dict[str, str] = {}
        self.waiting = 0
        self._ways: set[_Way] = set()
        self._server: asyncio.Server | None = None

    @property
    def plain_address(self) -> str:
        """For gRPC to listen at."""
        return GRPC_PREFIX + self._behind[HTTP2_PREFACE]

    @property
    def tls_address(self) -> str:
        return GRPC_PREFIX + self._behind[TLS_RECORD]

    def host_of(self, peer: str) -> str:
        """Who is at the other end of a connection that gRPC knows by the name that this front gave it."""
        return self._hosts.get(peer.removeprefix(GRPC_PREFIX), peer)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Outer(self), sock=self._socket, backlog=BACKLOG)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for way in list(self._ways):
            way.cut()

    def began(self, way: "_Way") -> None:
        self._ways.add(way)

    def ended(self, way: "_Way") -> None:
        self._ways.discard(way)

    async def connect(self, first: int, outer: "_Outer") -> "_Inner":
        """To the listener behind, by a name that tells the caller's address. OSError."""
        name = f"{self._stem}-{next(self._numbers)}"
        near = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            near.bind(f"\0{name}")
            loop = asyncio.get_running_loop()
            await loop.sock_connect(near, f"\0{self._behind[first]}")
            _, inner = await loop.create_connection(lambda: _Inner(self, outer), sock=near)
        except BaseException:
            near.close()
            raise
        self._hosts[name] = outer.host
        inner.name = name
        return inner

    def knows(self, first: int) -> bool:
        return first in self._behind

    def forget(self, name: str) -> None:
        self._hosts.pop(name, None)


class _Way(asyncio.Protocol):
    """One end of a connection; what arrives is written to the other end, and no faster than that takes it."""

    def __init__(self, front: Front) -> None:
        self.front = front
        self.transport: asyncio.Transport | None = None
        self.other: _Way | None = None
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.front.began(self)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        self.is_full = True
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        self.is_full = False
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def eof_received(self) -> bool:
        """gRPC closes both ways at once."""
        return False

    def connection_lost(self, error: Exception | None) -> None:
        """What was written before still goes out."""
        self.front.ended(self)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()

    def cut(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _Inner(_Way):
    """To gRPC's listener."""

    name = ""

    def __init__(self, front: Front, outer: "_Outer") -> None:
        super().__init__(front)
        self.other = outer

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self.front.forget(self.name)


class _Outer(_Way):
    """To whoever came. What it says is held back until it is known where it goes."""

    host = ""

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._first: bytes | None = b""  # None: it is known
        self._deadline: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        peer = self.transport.get_extra_info("peername") or ("",)
        self.host = str(peer[0])
        self.front.waiting += 1
        if self.front.waiting > WAITING_MAX:
            self.cut()
        self._deadline = asyncio.get_running_loop().call_later(FIRST_BYTE_SECONDS_MAX, self.cut)

    def data_received(self, data: bytes) -> None:
        if self.other is not None:
            super().data_received(data)
        elif self._connecting is not None:
            self._first = (self._first or b"") + data  # at most what was read before reading paused
        elif not self.front.knows(data[0]):
            self.cut()
        else:
            self._first = data
            assert self.transport is not None
            self.transport.pause_reading()
            self._connecting = asyncio.create_task(self._connect(data[0]))

    async def _connect(self, first: int) -> None:
        try:
            inner = await self.front.connect(first, self)
        except OSError:
            self.cut()
            return
        self._settled()
        if self.transport is None or self.transport.is_closing():
            inner.cut()
            return
        self.other = inner
        assert inner.transport is not None
        inner.transport.write(self._first or b"")
        self._first = None
        if not inner.is_full:
            self.transport.resume_reading()

    def connection_lost(self, error: Exception | None) -> None:
        self._settled()
        super().connection_lost(error)

    def _settled(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            self.front.waiting -= 1


def _bind(host: str, port: int) -> socket.socket:
    """On every address by both families where there are both."""
    every = host == "[::]"
    plain_host = host.strip("[]")
    family = socket.AF_INET6 if ":" in plain_host else socket.AF_INET
    try:
        if every and not socket.has_dualstack_ipv6():
            return socket.create_server(("0.0.0.0", port), backlog=BACKLOG)
        return socket.create_server((plain_host, port), family=family, dualstack_ipv6=every, backlog=BACKLOG)
    except OSError as error:
        raise Refusal(f"cannot listen for gRPC on {host}:{port}: {error.strerror}") from None
