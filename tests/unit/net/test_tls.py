"""TLS under a connection over real sockets: order, pressure, ends, and those that never get through the handshake."""

import _ssl
import asyncio
import ctypes
import gc
import logging
import socket
import ssl
import struct
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from ottla.api.call import Answer, Call
from ottla.errors import Code
from ottla.net import handshakes as bounds
from ottla.net import tls
from ottla.net.connection import Connection
from ottla.net.handshakes import Handshakes
from ottla.net.listener_security import ListenerSecurity
from ottla.net.tls import CIPHER_BYTES, TlsTransport
from ottla.ports import Clock
from ottla.security.core.audit import AuditEvent
from ottla.security.core.principal_rules import PrincipalRules
from ottla.system import RealClock
from support.certificates import Authority
from support.connections import shared
from support.frames import encode_request, framed

HEARTBEAT = 12
DEADLINE_S = 20.0
LARGE = bytes(range(256)) * 4096  # a megabyte
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    Authority.in_folder(made).issue("alice").write(made, "alice")
    return made


class Trail(list[AuditEvent]):
    def record(self, event: AuditEvent) -> None:
        self.append(event)


class Listening:
    """A listener's half of TLS, with what became of it."""

    def __init__(
        self, folder: Path, handle: Any, *, timeout_s: float = 10.0, rules: str = "DEFAULT", clock: Clock | None = None
    ) -> None:
        self.folder = folder
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "broker.pem")
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = ssl.CERT_OPTIONAL
        self.trail, self.open = Trail(), set[Connection]()
        self.security = ListenerSecurity(context=lambda: context, timeout_s=timeout_s, rules=PrincipalRules(rules))
        self.handshakes = Handshakes("TLS", self.security, audit=self.trail, clock=clock or RealClock())
        self._common = shared({HEARTBEAT: handle})
        self._arriving = memoryview(bytearray(CIPHER_BYTES))
        self.transports: list[weakref.ref[TlsTransport]] = []
        self.port = 0

    def transport(self) -> TlsTransport:
        assert self.security.context is not None
        made = TlsTransport(
            self.security.context(), handshakes=self.handshakes, arriving=self._arriving,
            make_connection=lambda: Connection(
                self._common, "TLS", frame_bytes_max=1 << 20, security=self.security, open_connections=self.open
            ),
        )  # fmt: skip
        self.transports.append(weakref.ref(made))
        return made

    @asynccontextmanager
    async def talking(
        self, certificate: str | None = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3
    ) -> AsyncIterator[Streams]:
        context = ssl.create_default_context(cafile=self.folder / "ca.pem")
        context.maximum_version = version
        if certificate is not None:
            context.load_cert_chain(self.folder / f"{certificate}.pem")
        streams = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname="localhost")
        yield streams
        streams[1].transport.abort()


def run(listening: Listening, test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(listening.transport, "127.0.0.1", 0)
        listening.port = server.sockets[0].getsockname()[1]
        async with asyncio.timeout(DEADLINE_S):
            await test()
        server.close()

    uvloop.run(main())


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def heartbeats(count: int, member: str = "m") -> bytes:
    asked = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)  # type: ignore[arg-type]
    return b"".join(framed(encode_request(asked, correlation_id=number)) for number in range(count))


async def answers(reader: asyncio.StreamReader, count: int) -> list[tuple[int, bytes]]:
    found = []
    for _ in range(count):
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        frame = await reader.readexactly(size)
        found.append((int.from_bytes(frame[:4], "big"), frame[4:]))
    return found


def small(request: Any, call: Call) -> Answer:
    return call.reply(error_code=Code.none)


def large(request: Any, call: Call) -> Answer:
    return call.frame([b"head", memoryview(LARGE), b"x" * 100_000, b"tail"])


def test_many_requests_at_once(folder: Path) -> None:
    listening = Listening(folder, small)

    async def test() -> None:
        async with listening.talking() as (reader, writer):
            writer.write(heartbeats(500))
            assert [number for number, _ in await answers(reader, 500)] == list(range(500))

    run(listening, test)


def test_requests_larger_than_what_arrives_at_once(folder: Path) -> None:
    listening = Listening(folder, small)

    async def test() -> None:
        async with listening.talking() as (reader, writer):
            writer.write(heartbeats(20, member="m" * 30_000))
            assert [number for number, _ in await answers(reader, 20)] == list(range(20))

    run(listening, test)


def test_large_answers_to_a_slow_reader(folder: Path) -> None:
    """Each waits until those before it are taken; nothing piles up in the transport."""
    listening = Listening(folder, large)

    async def test() -> None:
        async with listening.talking() as (reader, writer):
            writer.write(heartbeats(30))
            await asyncio.sleep(0)
            for number in range(30):
                ((correlation_id, body),) = await answers(reader, 1)
                transport = listening.transports[0]()
                assert transport is not None and transport.get_write_buffer_size() < 3 << 20
                assert correlation_id == number and body.endswith(b"tail") and LARGE in body

    run(listening, test)


def test_the_end_of_tls_is_sent(folder: Path) -> None:
    """A client knows that nothing was cut off."""
    listening = Listening(folder, small)

    async def test() -> None:
        async with listening.talking() as (reader, writer):
            writer.write(heartbeats(1))
            await answers(reader, 1)
            (connection,) = listening.open
            connection.close("enough")
            assert await reader.read() == b""  # an end without close_notify would be an error
            await until(lambda: not listening.open)

    run(listening, test)


def test_a_client_that_goes(folder: Path) -> None:
    listening = Listening(folder, small)

    async def test() -> None:
        for end in ("close", "abort"):
            async with listening.talking() as (reader, writer):
                writer.write(heartbeats(1))
                await answers(reader, 1)
                getattr(writer.transport, end)()
                await until(lambda: not listening.open)

    run(listening, test)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_lost_connection_needs_no_collector(folder: Path, no_collector: None) -> None:
    listening = Listening(folder, small)

    async def test() -> None:
        async with listening.talking() as (reader, writer):
            writer.write(heartbeats(3))
            await answers(reader, 3)
        await until(lambda: not listening.open)
        await until(lambda: [made() for made in listening.transports] == [None])

    run(listening, test)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (heartbeats(1), "it speaks Kafka's protocol without TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "it speaks HTTP without TLS"),
        (b"\xff" * 200, "its bytes are no TLS"),
        (b"\x16\x03\x01\x00\x05hello", "unexpected message"),
        (b"\x16\x03\x01\xff\xff" + b"\0" * 200, ""),
    ],
)
def test_what_is_no_tls(folder: Path, sent: bytes, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """One line, one event, and the connection ends."""
    caplog.set_level(logging.WARNING, "ottla.net.tls")
    listening = Listening(folder, small)

    async def test() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(sent)
        await reader.read()
        writer.close()

    run(listening, test)
    (event,) = listening.trail
    assert reason in event.reason and event.verdict == "failed" and event.listener == "TLS"
    assert sum("failed" in record.message for record in caplog.records) == 1
    assert listening.security.counts.failed == 1 and not listening.open


def test_a_client_that_only_looks(folder: Path) -> None:
    """Probes open a port and close it: that is no failure."""
    listening = Listening(folder, small)

    async def test() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.close()
        await until(lambda: listening.transports and listening.handshakes.room == bounds.HANDSHAKES_MAX)

    run(listening, test)
    assert not listening.trail


def test_who_takes_too_long(folder: Path) -> None:
    listening = Listening(folder, small, timeout_s=0.05)

    async def test() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(b"\x16\x03\x01")
        assert await reader.read() == b""
        writer.close()

    run(listening, test)
    assert [event.reason for event in listening.trail] == ["it takes too long (ottla.authentication.timeout.ms)"]


def test_crowds_take_turns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred handshakes at once hold the loop for a few milliseconds at a time, and all succeed."""
    listening, turns = Listening(folder, small), list[int]()
    monkeypatch.setattr(bounds, "TURN_SECONDS_MAX", 1e-9)  # one in each
    begin = Handshakes._begin_turn

    def counted(handshakes: Handshakes) -> None:
        turns.append(len(handshakes._queue))
        begin(handshakes)

    monkeypatch.setattr(Handshakes, "_begin_turn", counted)

    async def one() -> None:
        async with listening.talking() as (reader, writer):
            writer.write(heartbeats(1))
            await answers(reader, 1)

    async def test() -> None:
        await asyncio.gather(*(one() for _ in range(50)))
        await until(lambda: not listening.open)

    run(listening, test)
    assert max(turns) > 1 and len(turns) >= 100, "two flights each"
    assert listening.security.counts.succeeded == 50 and not listening.trail


@pytest.mark.parametrize(
    ("rules", "certificate", "principal"),
    [
        ("DEFAULT", "alice", "User:CN=alice"),
        ("RULE:^CN=(.*)$/$1@here/U", "alice", "User:ALICE@HERE"),
        ("RULE:^CN=bob$/bob/", None, "User:ANONYMOUS"),
    ],
)
def test_who_a_certificate_is(folder: Path, rules: str, certificate: str | None, principal: str) -> None:
    seen: list[str] = []

    def noted(request: Any, call: Call) -> Answer:
        seen.append(str(call.client.principal))
        return small(request, call)

    listening = Listening(folder, noted, rules=rules)

    async def test() -> None:
        async with listening.talking(certificate) as (reader, writer):
            writer.write(heartbeats(1))
            await answers(reader, 1)

    run(listening, test)
    assert seen == [principal]


class LaterClock(RealClock):
    later_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.later_ms


@pytest.mark.parametrize("certificate", ["alice", None])
def test_a_session_is_resumed_as_long_as_its_certificate_is_good(folder: Path, certificate: str | None) -> None:
    """The certificate ends in five days, and the client's clock does not matter."""
    clock = LaterClock()
    listening = Listening(folder, small, clock=clock)
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        context.load_cert_chain(folder / f"{certificate}.pem")

    def ask(session: ssl.SSLSession | None) -> tuple[ssl.SSLSession | None, bool]:
        """The session, and whether there was an answer."""
        raw = socket.create_connection(("127.0.0.1", listening.port), DEADLINE_S)
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as tls:
            assert tls.session_reused is (session is not None)
            try:
                tls.sendall(heartbeats(1))
                return tls.session, bool(tls.recv(1))
            except (ssl.SSLError, ConnectionError):
                return tls.session, False

    async def test() -> None:
        session, answered = await asyncio.to_thread(ask, None)
        assert answered and (await asyncio.to_thread(ask, session))[1]
        clock.later_ms = 6 * 24 * 3600 * 1000
        assert (await asyncio.to_thread(ask, session))[1] is (certificate is None)
        await until(lambda: not listening.open)

    run(listening, test)
    assert [event.reason for event in listening.trail] == ["its certificate has expired"] * (certificate is not None)


def test_a_certificate_that_is_nobody(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "ottla.net")
    listening = Listening(folder, small, rules="RULE:^CN=bob$/bob/")

    async def test() -> None:
        async with listening.talking("alice") as (reader, writer):
            writer.write(heartbeats(1))
            assert await reader.read() == b""

    run(listening, test)
    assert "its certificate gives no principal: No rules apply to CN=alice" in caplog.text


def test_too_many_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that take long make room; meanwhile others wait in the kernel's queue."""
    monkeypatch.setattr(bounds, "HANDSHAKES_MAX", 5)
    monkeypatch.setattr(bounds, "HURRY_SECONDS", 0.02)
    listening = Listening(folder, small)

    async def test() -> None:
        waiting = [await asyncio.open_connection("127.0.0.1", listening.port) for _ in range(5)]
        await until(lambda: len(listening.transports) == 5)
        await until(lambda: listening.handshakes.room == 5)
        for reader, writer in waiting:
            assert await reader.read() == b""
            writer.close()

    run(listening, test)
    assert len(listening.trail) == 5


@contextmanager
def openssl_client(port: int) -> Iterator[tuple[ctypes.CDLL, ctypes.c_void_p]]:
    """For what Python's own `ssl` does not do."""
    library = ctypes.CDLL(_ssl.__file__)
    try:
        for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
            getattr(library, name).restype = ctypes.c_void_p
    except AttributeError:
        pytest.skip("OpenSSL of this Python cannot be called")
    context = ctypes.c_void_p(library.SSL_CTX_new(ctypes.c_void_p(library.TLS_client_method())))
    client = ctypes.c_void_p(library.SSL_new(context))
    with socket.create_connection(("127.0.0.1", port)) as stranger:
        library.SSL_set_fd(client, stranger.fileno())
        assert library.SSL_connect(client) == 1
        yield library, client
        library.SSL_free(client)
        library.SSL_CTX_free(context)


def send_key_updates(port: int, count: int) -> int:
    """How many of them were taken, by a client that sends nothing else."""
    sent = 0
    with openssl_client(port) as (library, client):
        while sent < count and library.SSL_key_update(client, 1) == 1 and library.SSL_do_handshake(client) == 1:
            sent += 1
    return sent


def send_padded(port: int, requests: int) -> None:
    """One after the other, each in a record with 16 bytes of padding, as Java's clients send them over TLS 1.3."""
    padding = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p)(
        lambda *_: 16
    )
    request, answer = heartbeats(1), ctypes.create_string_buffer(1000)
    with openssl_client(port) as (library, client):
        library.SSL_set_record_padding_callback(client, padding)
        for _ in range(requests):
            assert library.SSL_write(client, request, len(request)) == len(request)
            assert library.SSL_read(client, answer, len(answer)) > 0, "closed"


def test_padding_is_no_lack_of_data(folder: Path) -> None:
    listening = Listening(folder, small)

    async def test() -> None:
        await asyncio.to_thread(send_padded, listening.port, 3000)

    run(listening, test)


def test_key_updates_without_data(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each derives keys: a megabyte of them a second would keep the loop from everybody."""
    caplog.set_level(logging.WARNING, "ottla.net")
    listening = Listening(folder, small)

    async def test() -> None:
        assert await asyncio.to_thread(send_key_updates, listening.port, 100_000) < 100_000
        await until(lambda: not listening.open)

    run(listening, test)
    assert "more than 24576 bytes of TLS without data" in caplog.text


def test_a_few_key_updates_are_taken(folder: Path) -> None:
    listening = Listening(folder, small)

    async def test() -> None:
        assert await asyncio.to_thread(send_key_updates, listening.port, 200) == 200

    run(listening, test)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_small_records_and_parts_of_large_ones_are_data(
    folder: Path, version: ssl.TLSVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is around them, and however often others come in between."""
    monkeypatch.setattr(tls, "DECRYPTING_SECONDS_MAX", 0.0)
    listening = Listening(folder, small)

    async def test() -> None:
        async with listening.talking(version=version) as (reader, writer):
            for _ in range(30):
                for byte in heartbeats(20):
                    writer.write(bytes((byte,)))
                writer.write(heartbeats(20, member="m" * 30_000))
                await answers(reader, 40)
            transport = listening.transports[0]()
            assert transport is not None and transport._barren_bytes == 0

    run(listening, test)
