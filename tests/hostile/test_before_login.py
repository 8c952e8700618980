"""Whoever has no password and no certificate: thousands of damaged handshakes and logins, and nothing comes of them."""

import contextlib
import re
import socket
import ssl
import struct
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient
from support.librdkafka import make_topic
from support.mutations import mutate, mutated_requests
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.raw_requests import header, text
from support.sasl_bytes import Talk, api_versions, authenticate, framed, handshake, metadata, plain, raw
from support.secured import Secured

AT_ONCE = 40
STALL_MS_MAX = 150.0
MEMORY_BYTES_MAX = 288 << 20
GROWTH_BYTES_MAX = 48 << 20
KNOWN = "known-topic"
ANSWER_SECONDS = 0.02
HEALTH = free_port()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    """Everybody takes no more than a second to log in, so that those who wait do not pile up."""
    made: list[OttlaBroker] = []

    def make_broker() -> OttlaBroker:
        made.append(OttlaBroker(tmp_path / "broker", inside=["prlimit", f"--data={MEMORY_BYTES_MAX}"]))
        return made[-1]

    folder = tmp_path / "certificates"
    folder.mkdir()
    settings = {
        "ottla.authentication.timeout.ms": "1000", "connection.failed.authentication.delay.ms": "10",
        "ottla.health.port": str(HEALTH), "listener.name.mtls.ssl.client.auth": "required",
    }  # fmt: skip
    yield Secured(make_broker, folder, settings)
    (broker,) = made
    try:
        assert broker.running, broker.log_tail()
        assert broker.stop() == 0
        assert "Traceback" not in broker.log_path.read_text(), broker.log_tail()
    finally:
        broker.close()


@pytest.fixture
def random(pytestconfig: pytest.Config) -> Random:
    seed = pytestconfig.getoption("--mutation-seed") or Random().getrandbits(32)
    print(f"\n  seed {seed}")
    return Random(seed)


def create_topic(name: str) -> bytes:
    """What nobody here may do."""
    topic = text(name) + struct.pack(">ih", 1, 1) + struct.pack(">ii", 0, 0)
    return framed(header(19, 0) + struct.pack(">i", 1) + topic + struct.pack(">i", 10_000))


def logins(random: Random) -> Iterator[bytes]:
    """Conversations without a right password, some of them damaged; each ends with what somebody logged in may ask."""
    others = mutated_requests(random, (KNOWN, "group"))
    while True:
        wrong = [plain("bob", "wrong"), plain("eve"), random.randbytes(random.randrange(60)), b"", plain("bob", "")]
        parts = [
            random.choice([
                api_versions(), handshake(), handshake(version=0), handshake("SCRAM-SHA-512"), metadata(),
                authenticate(random.choice(wrong)), raw(random.choice(wrong)), next(others),
            ])
            for _ in range(random.randrange(1, 6))
        ]  # fmt: skip
        data = bytearray(b"".join(parts))
        for _ in range(random.randrange(3)):
            mutate(data, random)
        yield bytes(data) + create_topic("stolen") + metadata()


def test_logins(secured: Secured, random: Random, pytestconfig: pytest.Config) -> None:
    count = pytestconfig.getoption("--mutated-logins")
    conversations = logins(random)
    make_topic(secured.broker.bootstrap, KNOWN)
    attack(secured, "IN", count, lambda client: talk(client, next(conversations)))
    assert topics(secured.broker.bootstrap) == {KNOWN}
    assert succeeded("IN") == 0


def test_handshakes(secured: Secured, random: Random, pytestconfig: pytest.Config) -> None:
    """At a listener that asks for a certificate: without one, and with that of a wrong authority."""
    count = pytestconfig.getoption("--mutated-logins") // 4
    make_topic(secured.broker.bootstrap, KNOWN)
    certificates = [None, f"{secured.folder}/mallory.pem"]
    contexts = [client_context(each) for each in certificates]
    attack(secured, "MTLS", count, lambda client: half_handshake(client, random.choice(contexts), random))
    assert topics(secured.broker.bootstrap) == {KNOWN}
    assert succeeded("MTLS") == 0


@pytest.mark.parametrize("listener", ["IN", "TLS", "MTLS", "SAFE"])
def test_silence(secured: Secured, listener: str) -> None:
    """Whoever says nothing, or not enough, keeps no connection."""
    for said in (b"", b"\x16\x03\x01", b"\0\0\0\x20\0\x12") if listener != "TLS" else (b"", b"\x16"):
        with socket.create_connection((secured.broker.host, secured.ports[listener]), 10) as client:
            client.settimeout(15)
            client.sendall(said)
            with contextlib.suppress(ConnectionError):
                while client.recv(1000):
                    pass


def client_context(certificate: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate)
    return context


def talk(client: socket.socket, data: bytes) -> None:
    client.sendall(data)


def half_handshake(client: socket.socket, context: ssl.SSLContext, random: Random) -> None:
    """Up to two flights, any of them damaged."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)
    for flight in range(2):
        with contextlib.suppress(ssl.SSLError):
            tls.do_handshake()
        with contextlib.suppress(ssl.SSLError):
            tls.write(create_topic("stolen"))
        data = bytearray(outgoing.read())
        if random.random() < (0.7, 0.9)[flight]:
            for _ in range(random.randrange(1, 4)):
                mutate(data, random)
        client.sendall(data)
        if flight == 0:
            client.settimeout(ANSWER_SECONDS)  # of a damaged one the broker may want more
            incoming.write(client.recv(65536))


def attack(secured: Secured, listener: str, count: int, deed: Callable[[socket.socket], None]) -> None:
    """Beside somebody who asks again and again, at a listener of its own."""
    stalls: list[float] = []
    settled_bytes, rounds = 0, count // AT_ONCE
    place = (secured.broker.host, secured.ports[listener])
    with Talk(secured.broker.host, secured.broker.port) as neighbour:
        ping_ms(neighbour)
        for number in range(rounds):
            with contextlib.ExitStack() as stack:
                for _ in range(AT_ONCE):
                    client = stack.enter_context(socket.create_connection(place, 10))
                    with contextlib.suppress(ConnectionError, TimeoutError):
                        deed(client)
                stalls.append(ping_ms(neighbour))
            if number == rounds // 4:
                settled_bytes = secured.broker.resident_bytes()
    grown = secured.broker.resident_bytes() - settled_bytes
    stalls.sort()
    print(f"  {rounds * AT_ONCE} at {listener}; neighbour p99 {stalls[len(stalls) * 99 // 100]:.1f} ms, worst "
          f"{stalls[-1]:.1f} ms; memory {settled_bytes >> 20} MB, then {grown >> 20} MB more")  # fmt: skip
    assert stalls[-1] <= STALL_MS_MAX
    assert grown <= GROWTH_BYTES_MAX


def ping_ms(neighbour: Talk) -> float:
    began = time.perf_counter()
    assert neighbour.code(api_versions()) == 0
    return (time.perf_counter() - began) * 1000


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics)


def succeeded(listener: str) -> float:
    name = "kafka_server_socket_server_metrics_successful_authentication_total"
    with urllib.request.urlopen(f"http://127.0.0.1:{HEALTH}/metrics", timeout=5) as answer:
        found = re.search(rf'^{name}{{[^}}]*listener="{listener}"[^}}]*}} (\S+)', answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])
