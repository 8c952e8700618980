"""Real servers and channels over TLS: who gets in, and what happens when certificates change."""

import asyncio
import contextlib
import datetime
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import grpc
import grpc.aio
import pytest
from ottla.errors import Refusal
from ottla.pb import control_pb2
from ottla.rpc.changes import CHANGES
from ottla.rpc.channels import Channels, secured
from ottla.rpc.credentials import CredentialFiles, WatchedCredentials, of_node, read_credentials
from ottla.rpc.gate import Context, require_node
from ottla.rpc.roles import METHODS
from ottla.rpc.securing import OPEN, RpcSecurity
from ottla.rpc.server import RpcServer
from ottla.security.core.audit import AuditEvent
from ottla.security.renewal import LOOKS_BETWEEN_TRIES
from support.fleet_certificates import OTHER_CLUSTER_ID, Authority, Files, now, put
from support.nodes import until

SERVICE = "ottla.pb.Replication"
ROTATE = "/ottla.pb.Control/RotateScram"
ECHO, STREAM = f"/{SERVICE}/Echo", f"/{SERVICE}/Stream"
BOTH, TLS = frozenset({"PLAINTEXT", "TLS"}), frozenset({"TLS"})
SECONDS = 5.0


class Trail:
    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def record(self, event: AuditEvent) -> None:
        self.events.append(event)


async def echo(request: bytes, context: Context) -> bytes:
    if request.startswith(b"node "):
        require_node(context, int(request[5:]))
    return request


async def rotate(asked: control_pb2.RotateScramRequest, context: Context) -> bytes:
    return b""


async def stream(requests: AsyncIterator[bytes], context: Context) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


class Node:
    """A server of node 1, whose files may change."""

    def __init__(self, folder: Path, authority: Authority, accepts: frozenset[str] = TLS) -> None:
        self.files = files_in(folder, authority.issue("broker", "1"))
        self.credentials = WatchedCredentials(self.files, of_node(1, is_broker=True))
        self.trail = Trail()
        speaks = "TLS" if accepts == TLS else "PLAINTEXT"
        security = RpcSecurity(speaks, accepts, self.credentials)
        self.server = RpcServer("127.0.0.1", 0, security=security)
        self.server.audit_to(self.trail)
        self.address = f"127.0.0.1:{self.server.port}"

    async def __aenter__(self) -> "Node":
        methods = {
            "Echo": grpc.unary_unary_rpc_method_handler(echo),
            "Stream": grpc.stream_stream_rpc_method_handler(stream),
        }
        self.server.add(SERVICE, methods)
        read = control_pb2.RotateScramRequest.FromString
        rotates = grpc.unary_unary_rpc_method_handler(rotate, request_deserializer=read)
        self.server.add("ottla.pb.Control", {"RotateScram": rotates})
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop()


def files_in(folder: Path, source: Files) -> CredentialFiles:
    folder.mkdir(exist_ok=True)
    put(source.keystore, folder / "node.pem")
    put(source.ca, folder / "ca.crt")
    return CredentialFiles(str(folder / "node.pem"), str(folder / "ca.crt"))


def content(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, data: bytes | None) -> None:
    """None: the file goes."""
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)


async def say(channel: grpc.aio.Channel, word: bytes = b"word") -> bytes:
    try:
        answer: bytes = await channel.unary_unary(ECHO)(word, timeout=SECONDS)
        return answer
    finally:
        await channel.close(None)


async def refused(channel: grpc.aio.Channel, word: bytes = b"word") -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await say(channel, word)
    return error.value.code()


def by(files: Files) -> Callable[[str], grpc.aio.Channel]:
    return lambda address: secured(address, read_credentials(files.in_broker(), now()))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


def run(scene: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scene

    asyncio.run(bounded())


@pytest.mark.parametrize("accepts", [TLS, BOTH], ids=["tls", "both"])
def test_a_certificate_of_the_right_role_gets_in_and_others_do_not(
    tmp_path: Path, authority: Authority, accepts: frozenset[str]
) -> None:
    async def scene() -> None:
        foreign = Authority(tmp_path / "foreign").issue("broker", "2")
        elsewhere = Authority(tmp_path / "elsewhere", OTHER_CLUSTER_ID)
        async with Node(tmp_path / "node", authority, accepts) as node:
            assert await say(by(authority.issue("broker", "2"))(node.address)) == b"word"
            code = await refused(by(authority.issue("person", "alice"))(node.address))
            assert code is grpc.StatusCode.PERMISSION_DENIED
            (event,) = node.trail.events
            assert (str(event.principal), event.action, event.verdict) == ("person:alice", ECHO, "denied")
            assert event.host == "127.0.0.1"
            assert await refused(by(foreign)(node.address)) is grpc.StatusCode.UNAVAILABLE, "another CA"
            assert await refused(by(elsewhere.issue("broker", "2"))(node.address)) is grpc.StatusCode.UNAVAILABLE
            nameless = grpc.ssl_channel_credentials(authority.ca.read_bytes())
            options = [("grpc.ssl_target_name_override", node.credentials.current.peer_name)]
            channel = grpc.aio.secure_channel(node.address, nameless, options=options)
            assert await refused(channel) is grpc.StatusCode.UNAVAILABLE, "no certificate at all"
            plain = grpc.aio.insecure_channel(node.address)
            if accepts == BOTH:
                assert await say(plain) == b"word"
            else:
                assert await refused(plain) is grpc.StatusCode.UNAVAILABLE

    run(scene())


def test_a_certificate_of_another_cluster_by_the_same_ca_is_denied(tmp_path: Path, authority: Authority) -> None:
    """A CA should issue for one cluster, but nobody can make it."""

    async def scene() -> None:
        shared = Authority(tmp_path / "shared", OTHER_CLUSTER_ID)
        both = tmp_path / "both.crt"
        both.write_bytes(authority.ca.read_bytes() + shared.ca.read_bytes())
        async with Node(tmp_path / "node", authority) as node:
            put(both, Path(node.files.truststore))
            await node.credentials.look()
            stranger = shared.issue("broker", "2")._replace(ca=both)
            credentials = read_credentials(stranger.in_broker(), now())
            options = [("grpc.ssl_target_name_override", node.credentials.current.peer_name)]
            channel = grpc.aio.secure_channel(node.address, credentials.for_channel(), options=options)
            assert await refused(channel) is grpc.StatusCode.PERMISSION_DENIED
            assert "another cluster" in node.trail.events[-1].reason

    run(scene())


def test_who_changed_the_cluster_is_written_down(tmp_path: Path, authority: Authority) -> None:
    async def scene() -> None:
        asked = control_pb2.RotateScramRequest(user="ann", credentials=[{"stored_key": b"hush"}])
        async with Node(tmp_path / "node", authority) as node:
            for files in (authority.issue("person", "alice"), authority.issue("broker", "2")):
                channel = by(files)(node.address)
                with contextlib.suppress(grpc.aio.AioRpcError):
                    await channel.unary_unary(ROTATE)(asked.SerializeToString(), timeout=SECONDS)
                await channel.close(None)
            told = [(str(e.principal), e.action, e.resource, e.verdict) for e in node.trail.events]
            assert told == [("person:alice", ROTATE, "User:ann", "allowed"), ("broker:2", ROTATE, "", "denied")]

    run(scene())


def test_every_change_is_written_down() -> None:
    asks = ("DescribeQuorum", "DescribeFleet", "MayRestart", "DescribeScram", "DescribeTopics")
    of_nodes = ("Submit", "Heartbeat")
    control = {method for method in METHODS if method.startswith("/ottla.pb.Control/")}
    assert control - {f"/ottla.pb.Control/{name}" for name in (*asks, *of_nodes)} == set(CHANGES)


@pytest.mark.parametrize(
    ("method", "asked", "names"),
    [
        ("Drain", control_pb2.DrainRequest(broker=3), ["Broker:3"]),
        ("Unregister", control_pb2.UnregisterRequest(broker=3), ["Broker:3"]),
        ("AddVoter", control_pb2.AddVoterRequest(node=3), ["Voter:3"]),
        ("RemoveVoter", control_pb2.RemoveVoterRequest(node=3), ["Voter:3"]),
        (
            "Reassign",
            control_pb2.ReassignRequest(moves=[{"topic": "t", "partition": 1, "replicas": [2, 3]}, {"topic": "u"}]),
            ["Topic:t-1 to 2,3", "Topic:u-0 to where it was"],
        ),
        (
            "AlterTopics",
            control_pb2.AlterTopicsRequest(topics=[{"name": "t", "configs": {"retention.ms": "1"}}]),
            ["Topic:t (retention.ms)"],
        ),
        ("CreateTopics", control_pb2.CreateTopicsRequest(topics=[{"name": "t"}]), ["Topic:t ()"]),
        ("DeleteTopics", control_pb2.DeleteTopicsRequest(names=["t", "u"]), ["Topic:t", "Topic:u"]),
    ],
)
def test_what_a_change_names(method: str, asked: Any, names: list[str]) -> None:
    assert list(CHANGES[f"/ottla.pb.Control/{method}"](asked)) == names


def test_a_node_speaks_for_itself_only(tmp_path: Path, authority: Authority) -> None:
    async def scene() -> None:
        async with Node(tmp_path / "node", authority) as node:
            two = authority.issue("broker", "2")
            assert await say(by(two)(node.address), b"node 2") == b"node 2"
            assert await refused(by(two)(node.address), b"node 3") is grpc.StatusCode.PERMISSION_DENIED
            assert "does not speak for node 3" in node.trail.events[-1].reason

    run(scene())


def test_a_person_cannot_pose_as_a_node(tmp_path: Path, authority: Authority) -> None:
    """Whoever is called must be a node: nobody hands its commands to a listener with a person's certificate."""

    async def scene() -> None:
        alice = authority.issue("person", "alice")
        server = grpc.aio.server()
        credentials = grpc.ssl_server_credentials([(alice.key.read_bytes(), alice.certificate.read_bytes())])
        port = server.add_secure_port("127.0.0.1:0", credentials)
        await server.start()
        try:
            code = await refused(by(authority.issue("broker", "2"))(f"127.0.0.1:{port}"))
            assert code is grpc.StatusCode.UNAVAILABLE
        finally:
            await server.stop(None)

    run(scene())


@pytest.mark.parametrize("accepts", [TLS, BOTH], ids=["tls", "both"])
def test_streams_live_on_when_certificates_and_the_ca_change(
    tmp_path: Path, authority: Authority, accepts: frozenset[str]
) -> None:
    """First both CAs are trusted, then the new one issues, then the old one is trusted no more."""

    async def scene() -> None:
        following = Authority(tmp_path / "following")
        both = tmp_path / "both.crt"
        both.write_bytes(authority.ca.read_bytes() + following.ca.read_bytes())
        files = files_in(tmp_path / "two", authority.issue("broker", "2"))
        mine = WatchedCredentials(files, of_node(2, is_broker=True))
        channels = Channels(mine)
        async with Node(tmp_path / "one", authority, accepts) as node:
            old = channels.to(node.address)
            call = old.stream_stream(STREAM)()
            await call.write(b"before")
            assert await call.read() == b"before"
            for ca, source in ((both, authority), (both, following), (following.ca, following)):
                for place, name, watched in ((node.files, "1", node.credentials), (files, "2", mine)):
                    put(ca, Path(place.truststore))
                    put(source.issue("broker", name).keystore, Path(place.keystore))
                    before = watched.current
                    await watched.look()
                    assert watched.current is not before
                assert channels.to(node.address) is not old
                assert await channels.to(node.address).unary_unary(ECHO)(b"new", timeout=SECONDS) == b"new"
                await call.write(b"still")
                assert await call.read() == b"still"
            code = await refused(by(authority.issue("broker", "2"))(node.address))
            assert code is grpc.StatusCode.UNAVAILABLE, "the old CA is trusted no more"
            await call.done_writing()
            assert await call.read() is grpc.aio.EOF
            await channels.close()

    run(scene())


def test_a_certificate_that_ends_begins_no_more_calls_and_ends_no_stream(tmp_path: Path, authority: Authority) -> None:
    """On the connection that it has made while it was good, too."""

    async def scene() -> None:
        async with Node(tmp_path / "node", authority) as node:
            channel = by(authority.issue("broker", "2", days=10))(node.address)
            begun = channel.stream_stream(STREAM)()
            await begun.write(b"before")
            assert await begun.read() == b"before"
            assert await channel.unary_unary(ECHO)(b"word", timeout=SECONDS) == b"word"
            node.server._gate._now_s = (now() + datetime.timedelta(days=11)).timestamp
            for call in (channel.unary_unary(ECHO)(b"word", timeout=SECONDS), channel.stream_stream(STREAM)().read()):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await call
                assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED
                assert node.trail.events[-1].reason == "the certificate of broker 2 has expired"
            await begun.write(b"still")
            assert await begun.read() == b"still"
            await channel.close(None)

    run(scene())


def test_files_that_do_not_fit_are_refused_and_the_old_stay(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        foreign = Authority(tmp_path / "foreign")
        async with Node(tmp_path / "node", authority) as node:
            good, keystore = node.credentials.current, Path(node.files.keystore)
            whole = content(keystore)
            key = whole[: whole.index(b"-----BEGIN CERT")]
            wrong = {
                "has no certificate": key,
                "is not PEM": b"\x30\x82",
                "cannot be read": None,
                "not that of the certificate": key + authority.issue("broker", "1").certificate.read_bytes(),
                "the private key is malformed": whole.replace(key[60:70], b"", 1),
                "no CA in": foreign.issue("broker", "1").keystore.read_bytes(),
                "not now": authority.issue("broker", "1", at=now().replace(year=2020)).keystore.read_bytes(),
                "this is node 1": authority.issue("broker", "3").keystore.read_bytes(),
                "needs broker": authority.issue("controller", "1").keystore.read_bytes(),
            }
            for reason, data in wrong.items():
                caplog.clear()
                overwrite(keystore, data)
                await node.credentials.look()
                assert node.credentials.current is good, reason
                assert reason in caplog.text
                assert "PRIVATE" not in caplog.text
                for _ in range(2 * LOOKS_BETWEEN_TRIES):
                    await node.credentials.look()
                assert caplog.text.count(reason) == 1, "one line for each change"
            assert await say(by(authority.issue("broker", "2"))(node.address)) == b"word"
            put(authority.issue("broker", "1").keystore, keystore)
            await node.credentials.look()
            assert node.credentials.current is not good

    with caplog.at_level(logging.INFO, logger="ottla"):
        run(scene())


def test_what_becomes_good_without_a_change_is_taken(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate that is not valid yet, or no more, by a clock that is set right; a file that could not be read."""

    async def taken(watched: WatchedCredentials) -> bool:
        before = watched.current
        for _ in range(LOOKS_BETWEEN_TRIES):
            await watched.look()
        return watched.current is not before

    async def scene() -> None:
        files = files_in(tmp_path / "node", authority.issue("broker", "1"))
        watched, day = WatchedCredentials(files, of_node(1, is_broker=True)), datetime.timedelta(days=1)
        for wrong in (-2 * day, 20 * day):
            monkeypatch.setattr("ottla.rpc.credentials._now", lambda wrong=wrong: now() + wrong)
            put(authority.issue("broker", "1").keystore, Path(files.keystore))
            assert not await taken(watched)
            monkeypatch.setattr("ottla.rpc.credentials._now", now)
            assert await taken(watched)
        put(authority.issue("broker", "1").keystore, Path(files.keystore))
        with monkeypatch.context() as patched:
            patched.setattr("ottla.rpc.credentials.FILE_BYTES_MAX", 0)
            assert not await taken(watched)
        assert await taken(watched)
        assert watched.refusals == 3

    run(scene())


def test_a_swapped_symlink_is_noticed_without_being_asked(tmp_path: Path, authority: Authority) -> None:
    """As Kubernetes swaps the files of a Secret."""

    async def scene() -> None:
        for number in (1, 2):
            files_in(tmp_path / f"version-{number}", authority.issue("broker", "1"))
        current = tmp_path / "current"
        current.symlink_to("version-1")
        files = CredentialFiles(str(current / "node.pem"), str(current / "ca.crt"))
        watched = WatchedCredentials(files, of_node(1, is_broker=True))
        before = watched.current
        watched.watch()
        (tmp_path / "next").symlink_to("version-2")
        (tmp_path / "next").replace(current)
        await until(lambda: watched.current is not before, "the new certificate is in force")
        await watched.close()

    run(scene())


def test_the_front_closes_what_is_neither_and_whoever_is_silent(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ottla.rpc.front.FIRST_BYTE_SECONDS_MAX", 0.1)

    async def scene() -> None:
        async with Node(tmp_path / "node", authority, BOTH) as node:
            for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x00", b"", b"\x15\x03"):
                reader, writer = await asyncio.open_connection("127.0.0.1", node.server.port)
                writer.write(said)
                assert await reader.read() == b""
                writer.close()
            front = node.server._front
            assert front is not None and front.waiting == 0 and not front._ways

    run(scene())


def test_much_passes_the_front_in_both_directions_whole(tmp_path: Path, authority: Authority) -> None:
    async def scene() -> None:
        async with Node(tmp_path / "node", authority, BOTH) as node:
            for channel in (grpc.aio.insecure_channel(node.address), by(authority.issue("broker", "2"))(node.address)):
                call = channel.stream_stream(STREAM)()
                for number in range(20):
                    word = bytes([number]) * 1_000_000
                    await call.write(word)
                    assert await call.read() == word
                await channel.close(None)

    run(scene())


@pytest.mark.parametrize("accepts", [TLS, BOTH], ids=["tls", "both"])
def test_damaged_handshakes_do_no_harm(tmp_path: Path, authority: Authority, accepts: frozenset[str]) -> None:
    """Beside a stream that goes on, many at a time, some of which stay silent after their first words."""
    chance = Random(7)
    first_words = {"TLS": client_hello(), "PLAINTEXT": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(27)}

    async def attack(port: int) -> None:
        said = bytearray(chance.choice(list(first_words.values())))
        for _ in range(chance.randint(0, 4)):
            said[chance.randrange(1, len(said))] = chance.randrange(256)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said[: chance.randint(1, len(said))])
        if chance.random() < 0.5:
            writer.write_eof()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(0.05):
                await reader.read()
        writer.transport.abort()

    async def scene() -> None:
        async with Node(tmp_path / "node", authority, accepts) as node:
            channel = by(authority.issue("broker", "2"))(node.address)
            call = channel.stream_stream(STREAM)()
            for number in range(25):
                await asyncio.gather(*(attack(node.server.port) for _ in range(40)))
                await call.write(b"%d" % number)
                assert await call.read() == b"%d" % number
            assert not node.trail.events, "nobody got as far as a call"
            await channel.close(None)
            front = node.server._front
            if front is not None:
                # Both ends of the stream's connection are left, and its name.
                await until(lambda: len(front._ways) <= 2 and len(front._hosts) <= 1, "all others are gone")
                assert front.waiting == 0

    run(scene())


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


def test_a_port_that_is_taken_is_refused_with_a_sentence(tmp_path: Path, authority: Authority) -> None:
    async def scene() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            watched = WatchedCredentials(authority.issue("broker", "1").in_broker(), of_node(1, is_broker=True))
            for security in (OPEN, RpcSecurity("TLS", TLS, watched), RpcSecurity("TLS", BOTH, watched)):
                with pytest.raises(Refusal, match="cannot listen for gRPC"):
                    RpcServer("127.0.0.1", port, security=security)

    run(scene())


def test_what_is_read_keeps_its_key_to_itself(authority: Authority) -> None:
    found: Any = read_credentials(authority.issue("broker", "1").in_broker(), now())
    assert "PRIVATE" not in repr(found) and "PRIVATE" not in f"{found}"
