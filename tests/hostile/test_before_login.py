"""Whoever has no password and no certificate: thousands of damaged handshakes and logins, and nothing comes of them."""

import contextlib
import re
import select
import socket
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from confluent_kafka.admin import AdminClient
from support.damaged_logins import Attempt, attempted_handshakes, attempted_logins, refused_tokens
from support.jwt_issuer import JwtIssuer
from support.librdkafka import make_topic
from support.metronome import Metronomes, Noise
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.sasl_bytes import Talk, api_versions
from support.scram_connection import set_password
from support.secured import PASSWORD, Secured

AT_ONCE = 40
STALL_MS_MAX = 150.0
MEMORY_BYTES_MAX = 288 << 20
GROWTH_BYTES_MAX = 16 << 20
REFUSED_SHARE_MIN = 0.2
LOG_BYTES_MAX = 8 << 20  # with the audit trail, which may have 2 MB
KNOWN = "known-topic"
ANSWER_SECONDS = 0.02  # to a damaged message there may be none
HEALTH = free_port()


@pytest.fixture
def issuer(tmp_path: Path) -> JwtIssuer:
    return JwtIssuer(tmp_path)


@pytest.fixture
def secured(tmp_path: Path, issuer: JwtIssuer) -> Iterator[Secured]:
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
        "listener.name.in.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "delegation.token.secret.key": "a secret of the fleet", **issuer.settings,
        "ottla.audit.log.file": str(tmp_path / "audit.log"), "ottla.audit.log.file.bytes.max": str(1 << 20),
        "ottla.audit.log.files.max": "2",
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


def test_logins(secured: Secured, issuer: JwtIssuer, random: Random, pytestconfig: pytest.Config) -> None:
    count = pytestconfig.getoption("--mutated-logins")
    make_topic(secured.broker.bootstrap, KNOWN)
    for mechanism in (1, 2):
        set_password(secured.broker.port, "bob", PASSWORD, mechanism)
    attack(secured, "IN", attempted_logins(random, (KNOWN, "group"), refused_tokens(issuer)), count)


def test_handshakes(secured: Secured, random: Random, pytestconfig: pytest.Config) -> None:
    """At a listener that asks for a certificate: without one, and with that of a wrong authority."""
    count = pytestconfig.getoption("--mutated-logins") // 4
    make_topic(secured.broker.bootstrap, KNOWN)
    attack(secured, "MTLS", attempted_handshakes(random, [None, f"{secured.folder}/mallory.pem"]), count)


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


@dataclass(frozen=True)
class Seen:
    """`memory_bytes` after each quarter of the attempts."""

    stalls_ms: Sequence[float]
    memory_bytes: Sequence[int]
    log_bytes: int
    noise: Noise

    def __str__(self) -> str:
        ordered = sorted(self.stalls_ms)
        memory = ", ".join(str(each >> 20) for each in self.memory_bytes)
        return (
            f"neighbour p99 {ordered[len(ordered) * 99 // 100]:.1f} ms, worst {ordered[-1]:.1f} ms; {self.noise}; "
            f"memory by quarters {memory} MB; log {self.log_bytes >> 10} KB"
        )

    def check(self) -> None:
        assert max(self.memory_bytes) - self.memory_bytes[0] <= GROWTH_BYTES_MAX, str(self)
        assert self.log_bytes <= LOG_BYTES_MAX, "whoever fails to log in fills the disk"
        assert max(self.stalls_ms) <= STALL_MS_MAX + self.noise.worst_ms, str(self)


def attack(secured: Secured, listener: str, attempts: Iterator[Attempt], count: int) -> None:
    """None of them may have been let in, nor may they be felt: by a neighbour at a listener of its own, in the broker's
    memory and in its log."""
    place, rounds = (secured.broker.host, secured.ports[listener]), count // AT_ONCE
    seen = watched(secured, (list(islice(attempts, AT_ONCE)) for _ in range(rounds)), rounds, place)
    failed = logins("failed", listener)
    print(f"  {rounds * AT_ONCE} at {listener}, {failed:.0f} refused by the login itself; {seen}")
    assert topics(secured.broker.bootstrap) == {KNOWN}
    assert logins("successful", listener) == 0
    assert failed > count * REFUSED_SHARE_MIN, "the attempts do not come as far as a login"
    seen.check()


def watched(secured: Secured, batches: Iterator[Sequence[Attempt]], rounds: int, place: tuple[str, int]) -> Seen:
    metronomes, stalls, memory = Metronomes(), [], []
    try:
        with Talk(secured.broker.host, secured.broker.port) as neighbour:
            ping_ms(neighbour)  # whatever a first request needs is there
            for number, batch in enumerate(batches, start=1):
                with contextlib.ExitStack() as stack:
                    make(batch, [stack.enter_context(socket.create_connection(place, 10)) for _ in batch])
                    stalls.append(ping_ms(neighbour))
                if number * 4 % rounds < 4:
                    memory.append(secured.broker.resident_bytes())
        logs = [secured.broker.log_path, *secured.folder.parent.glob("audit.log*")]
        return Seen(stalls, memory, sum(each.stat().st_size for each in logs), metronomes.finish())
    finally:
        metronomes.close()


def make(attempts: Sequence[Attempt], clients: Sequence[socket.socket]) -> None:
    """All at once: each says what it says first, and those who have more to say when they were answered or not."""
    for client, attempt in zip(clients, attempts, strict=True):
        say(client, attempt.first)
    heard = listen([client for client, attempt in zip(clients, attempts, strict=True) if attempt.then])
    for client, attempt in zip(clients, attempts, strict=True):
        if attempt.then is not None:
            say(client, attempt.then(heard[client]))


def say(client: socket.socket, what: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        client.sendall(what)


def listen(clients: Sequence[socket.socket]) -> dict[socket.socket, bytes]:
    """What each was answered; nothing, if it waits or is closed."""
    heard, silent = dict.fromkeys(clients, b""), set(clients)
    deadline = time.monotonic() + ANSWER_SECONDS
    while silent and (left_s := deadline - time.monotonic()) > 0:
        for client in select.select(list(silent), [], [], left_s)[0]:
            silent.discard(client)
            with contextlib.suppress(ConnectionError):
                heard[client] = client.recv(1 << 16)
    return heard


def ping_ms(neighbour: Talk) -> float:
    began = time.perf_counter()
    assert neighbour.code(api_versions()) == 0
    return (time.perf_counter() - began) * 1000


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=20).topics)


def logins(how: str, listener: str) -> float:
    """How many, `successful` or `failed`."""
    name = f"kafka_server_socket_server_metrics_{how}_authentication_total"
    with urllib.request.urlopen(f"http://127.0.0.1:{HEALTH}/metrics", timeout=5) as answer:
        found = re.search(rf'^{name}{{[^}}]*listener="{listener}"[^}}]*}} (\S+)', answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])
