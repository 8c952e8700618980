"""A Kafka listener: accepts connections, within limits, and closes those that have been idle.

It accepts by itself: when there are no more files to be had, clients stay in the kernel's queue until there are.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from collections.abc import Callable

from ottla.api.registry import frame_limits
from ottla.config import BrokerConfig, Endpoint
from ottla.errors import Refusal
from ottla.net.admission import Admission
from ottla.net.connection import Connection
from ottla.net.handshakes import HANDSHAKES_MAX, Handshakes
from ottla.net.listener_security import PLAIN_LISTENER, ListenerSecurity
from ottla.net.shared import Shared
from ottla.net.tls import CIPHER_BYTES, TlsTransport
from ottla.system import give_free_memory_back

__all__ = ["Listener"]

log = logging.getLogger("ottla.net")

REAP_SECONDS = 5.0
BACKLOG = 1024  # where the settings do not say
ACCEPTED_MAX = 64  # in one turn of the loop
FULL_SECONDS = 0.1  # until it is tried again whether there is a file for a connection
Factory = Callable[[], asyncio.BaseProtocol]
NOT_NOW = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    def __init__(self, endpoint: Endpoint, config: BrokerConfig) -> None:
        self.endpoint = endpoint
        self._config = config
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._full = False
        self._handshakes: Handshakes | None = None
        self._connections: set[Connection] = set()
        self._reaper: asyncio.Task[None] | None = None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def bind(self) -> int:
        """Take the port before anything else is started; clients are answered only after `start`."""
        endpoint = self.endpoint
        try:
            self._socket = socket.create_server(
                (endpoint.host or "0.0.0.0", endpoint.port),
                family=socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET,
                backlog=self._backlog,
            )
            self._size_buffers(self._socket)
        except OSError as error:
            raise Refusal(f"cannot listen on {endpoint}: {reason(error)}") from error
        self._socket.setblocking(False)
        return int(self._socket.getsockname()[1])

    @property
    def _backlog(self) -> int:
        """Kafka's default is 50: clients that come in a crowd would be turned away by the kernel for a second."""
        asked: int = self._config["socket.listen.backlog.size"]
        return asked if "socket.listen.backlog.size" in self._config.explicit else max(asked, BACKLOG)

    def _size_buffers(self, listening: socket.socket) -> None:
        """Accepted connections inherit these. Only when asked for: the system's own sizing beats Kafka's default."""
        for setting, option in (
            ("socket.send.buffer.bytes", socket.SO_SNDBUF),
            ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
        ):
            if setting in self._config.explicit and self._config[setting] > 0:
                listening.setsockopt(socket.SOL_SOCKET, option, self._config[setting])

    async def start(self, shared: Shared, security: ListenerSecurity = PLAIN_LISTENER) -> None:
        assert self._socket is not None
        self._handshakes = Handshakes(self.endpoint.name, security, audit=shared.trail, clock=shared.clock)
        self._accepting = asyncio.ensure_future(self._accept(self._socket, shared, security))
        idle_seconds = self._config["connections.max.idle.ms"] / 1000
        self._reaper = asyncio.ensure_future(self._reap(shared, idle_seconds, security.timeout_s))

    async def _accept(self, listening: socket.socket, shared: Shared, security: ListenerSecurity) -> None:
        loop = asyncio.get_running_loop()
        factory = self._factory(shared, security)
        readable = asyncio.Event()
        try:
            while True:
                readable.clear()
                loop.add_reader(listening, readable.set)
                await readable.wait()
                loop.remove_reader(listening)  # it would be called again and again while nobody is accepted
                accepted = self._accept_some(listening, shared.admission)
                await self._connect_all(accepted, factory)
                await asyncio.sleep(FULL_SECONDS if self._full else 0)
        finally:
            loop.remove_reader(listening)

    async def _connect_all(self, accepted: list[socket.socket], factory: Factory) -> None:
        """To the end also when the listener stops: uvloop closes a transport that is made while its maker is cancelled
        without a word to its connection, whose requests would be answered into nothing."""
        connecting = asyncio.gather(*(self._connect(each, factory) for each in accepted))
        try:
            await asyncio.shield(connecting)
        except asyncio.CancelledError:
            await connecting
            raise

    def _accept_some(self, listening: socket.socket, admission: Admission) -> list[socket.socket]:
        """Those that wait, as far as there are files for them; all at once, because the kernel's queue is short."""
        accepted: list[socket.socket] = []
        handshakes = self._handshakes.room if self._handshakes is not None else ACCEPTED_MAX
        room = min(admission.room - (HANDSHAKES_MAX - handshakes), handshakes, ACCEPTED_MAX)
        self._note_full(admission.room <= 0)
        with contextlib.suppress(BlockingIOError):
            while len(accepted) < room:
                try:
                    accepted.append(listening.accept()[0])
                except ConnectionError:  # gone before it was accepted
                    continue
                except BlockingIOError:
                    raise
                except OSError as error:
                    self._note_full(error.errno in NOT_NOW)
                    break
        return accepted

    async def _connect(self, accepted: socket.socket, factory: Factory) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().connect_accepted_socket(factory, accepted)
        except OSError as error:  # gone already, or no more files for the loop's own needs
            self._note_full(error.errno in NOT_NOW)
            accepted.close()

    def _note_full(self, full: bool) -> None:
        if full and not self._full:
            log.warning("no files are left for more connections on %s: clients wait (raise `ulimit -n`)", self.endpoint)
        self._full = full

    def _factory(self, shared: Shared, security: ListenerSecurity) -> Factory:
        limits = frame_limits(self._config["ottla.request.bytes.max"])

        def connection() -> Connection:
            return Connection(
                shared,
                self.endpoint.name,
                frame_bytes_max=self._config["socket.request.max.bytes"],
                limits=limits,
                security=security,
                open_connections=self._connections,
            )

        context, handshakes, arriving = security.context, self._handshakes, memoryview(bytearray(CIPHER_BYTES))
        if context is None or handshakes is None:
            return connection
        return lambda: TlsTransport(context(), handshakes=handshakes, arriving=arriving, make_connection=connection)

    async def _reap(self, shared: Shared, idle_seconds: float, login_seconds: float) -> None:
        """Close connections that are idle, and those that keep others from being served."""
        while True:
            await asyncio.sleep(min(idle_seconds, login_seconds, REAP_SECONDS))
            now = shared.clock.monotonic()
            shared.requests.close_the_slow(now)
            if shared.answers.was_scarce() | shared.requests.was_scarce():
                shared.threads.run(give_free_memory_back)
            for connection in list(self._connections):
                connection.close_if_idle_since(now - idle_seconds)

    async def stop(self) -> None:
        if self._reaper is not None:
            self._reaper.cancel()
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait([self._accepting])
        if self._socket is not None:
            self._socket.close()
        if self._handshakes is not None:
            self._handshakes.close()
        for connection in list(self._connections):
            connection.close("the broker stops", quiet=True)


def reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            "the port is in use; stop the other program or give another one with --set listeners=PLAINTEXT://HOST:PORT"
        )
    return error.strerror or str(error)
