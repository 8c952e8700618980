"""Every open port of a fleet that `ottla fleet up --secure` started, tried by whoever should get nothing."""

import http.client
import json
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import grpc
import psutil
import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.pb import control_pb2 as pb
from ottla.pb.control_pb2_grpc import ControlStub
from ottla.rpc.roles import CLUSTER_KEY
from ottla.security.core.identities import node_host
from support.fleet_certificates import Authority
from support.java import java_tool
from support.waiting import eventually

COUNT, FIRST_PORT, FIRST_PROBES = 3, 21_092, 21_700
KAFKA = [FIRST_PORT + number for number in range(COUNT)]
GRPC = [port + above for port in KAFKA for above in (100, 200)]
PROBES = [FIRST_PROBES + number for number in range(COUNT)]
SECONDS = 5.0
START_S, STOP_S = 60.0, 40.0
METADATA = struct.pack(">hhih4siB", 3, 9, 7, 4, b"test", -1, 0) + b"\0\x01\0\0\0\0"
# Names of what a stranger must not hear of.
TOPIC = "secret-plans"


class LocalFleet(NamedTuple):
    folder: Path
    process: "subprocess.Popen[bytes]"

    @property
    def conf(self) -> dict[str, str]:
        lines = (self.folder / "librdkafka.conf").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)

    @property
    def ca(self) -> Path:
        return self.folder / "pki" / "ca.crt"

    @property
    def cluster_id(self) -> str:
        return str(json.loads((self.folder / "fleet.json").read_text())["cluster_id"])

    def ottla(self, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "ottla", "fleet", *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def ports(self) -> set[int]:
        """At which any process of the fleet listens."""
        family = [self.process.pid, *(one.pid for one in psutil.Process(self.process.pid).children(recursive=True))]
        listening = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        return {c.laddr.port for c in listening if c.pid in family}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    folder = tmp_path_factory.mktemp("secure") / "data"
    words = ["up", "-n", str(COUNT), "--secure", "--port", str(FIRST_PORT), "--data-dir", str(folder)]
    command = [sys.executable, "-m", "ottla", "fleet", *words, "--set", f"ottla.health.port={FIRST_PROBES}"]
    log = folder.parent / "up.log"
    with log.open("wb") as lines:
        process = subprocess.Popen(command, stdout=lines, stderr=lines)
    made = LocalFleet(folder, process)
    try:
        eventually(lambda: log.read_text(), lambda told: "brokers up: 0, 1, 2; " in told, timeout_s=START_S)
        admin = AdminClient(made.conf)
        for done in admin.create_topics([NewTopic(TOPIC, 3, 3)]).values():
            done.result(SECONDS)
        yield made
    finally:
        process.terminate()
        process.wait(STOP_S)


def test_it_works_for_those_who_may(fleet: LocalFleet) -> None:
    producer = Producer(fleet.conf)
    producer.produce(TOPIC, b"hello", partition=0)
    assert producer.flush(SECONDS) == 0
    options = ("--bootstrap-server", f"127.0.0.1:{FIRST_PORT}", "--list")
    files = ("--command-config", str(fleet.folder / "client.properties"))
    told = java_tool("org.apache.kafka.tools.TopicCommand", *options, *files)
    assert TOPIC in told.lines
    status = fleet.ottla("status", "--data-dir", str(fleet.folder))
    assert status.returncode == 0 and "all in sync" in status.stdout


def test_what_is_for_the_owner_is_only_his(fleet: LocalFleet) -> None:
    for name in ("client.properties", "librdkafka.conf", "admin.password", "pki/ca.key", "pki/broker-0.pem"):
        assert (fleet.folder / name).stat().st_mode & 0o077 == 0, name
    password = fleet.conf["sasl.password"]
    for log in fleet.folder.glob("**/*.log"):
        assert password not in log.read_text(errors="replace"), log


def test_there_are_no_other_ports(fleet: LocalFleet) -> None:
    assert fleet.ports() == {*KAFKA, *GRPC, *PROBES}


# What strangers try. Each returns what it was given, "" when it got nothing.


def by_plain_kafka(fleet: LocalFleet, port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as plain:
        return conversation(plain, struct.pack(">i", len(METADATA)) + METADATA)


def by_http(fleet: LocalFleet, port: int) -> bytes:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as plain:
        return conversation(plain, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")


def by_kafka_without_login(fleet: LocalFleet, port: int) -> bytes:
    return over_tls(fleet, port, ssl_context(), struct.pack(">i", len(METADATA)) + METADATA)


def by_kafka_with_a_foreign_certificate(fleet: LocalFleet, port: int) -> bytes:
    return over_tls(fleet, port, ssl_context(foreign(fleet)), struct.pack(">i", len(METADATA)) + METADATA)


def by_plain_grpc(fleet: LocalFleet, port: int) -> bytes:
    return by_grpc(fleet, port, None)


def by_grpc_without_certificate(fleet: LocalFleet, port: int) -> bytes:
    return by_grpc(fleet, port, grpc.ssl_channel_credentials(fleet.ca.read_bytes()))


def by_grpc_with_a_foreign_certificate(fleet: LocalFleet, port: int) -> bytes:
    keystore = foreign(fleet).read_bytes()
    return by_grpc(fleet, port, grpc.ssl_channel_credentials(fleet.ca.read_bytes(), keystore, keystore))


def by_a_persons_certificate_as_a_node(fleet: LocalFleet, port: int) -> bytes:
    """Submit and Copy, which are not for people."""
    pki = fleet.folder / "pki"
    own = (pki / "admin.key").read_bytes(), (pki / "admin.crt").read_bytes()
    return by_grpc(fleet, port, grpc.ssl_channel_credentials(fleet.ca.read_bytes(), *own), as_node=True)


STRANGERS: list[Callable[[LocalFleet, int], bytes]] = [
    by_plain_kafka,
    by_http,
    by_kafka_without_login,
    by_kafka_with_a_foreign_certificate,
    by_plain_grpc,
    by_grpc_without_certificate,
    by_grpc_with_a_foreign_certificate,
    by_a_persons_certificate_as_a_node,
]


@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda one: one.__name__)
def test_no_port_gives_anything_to(fleet: LocalFleet, stranger: Callable[[LocalFleet, int], bytes]) -> None:
    ports = sorted(fleet.ports())
    with ThreadPoolExecutor(len(ports)) as pool:
        found = dict(zip(ports, pool.map(partial(stranger, fleet), ports), strict=True))
    page_not_found = b"HTTP/1.1 404 "  # of probes: it says which pages there are
    assert not {port: said for port, said in found.items() if said and not said.startswith(page_not_found)}


def test_a_failed_handshake_is_no_line_in_a_log(fleet: LocalFleet) -> None:
    """At the ports of gRPC, which would write one for each: a stranger could fill the disk."""
    for port in fleet.ports() & set(GRPC):
        by_grpc_without_certificate(fleet, port)
    for log in fleet.folder.glob("broker-*/ottla.log"):
        assert "ssl_transport_security" not in log.read_text(), log


def test_who_was_refused_is_in_the_audit_log(fleet: LocalFleet) -> None:
    for port in fleet.ports() & set(GRPC):
        by_a_persons_certificate_as_a_node(fleet, port)

    def denied() -> set[tuple[str, str, str]]:
        logs = [log.read_text() for log in fleet.folder.glob("broker-*/audit.log")]
        lines = [json.loads(line) for text in logs for line in text.splitlines()]
        return {(one["principal"], one["action"], one["host"]) for one in lines if one["listener"] == "gRPC"}

    methods = ("/ottla.pb.Control/Submit", "/ottla.pb.Replication/Copy")
    eventually(denied, lambda seen: seen >= {("person:admin", method, "127.0.0.1") for method in methods})


def test_a_wrong_password_gets_nothing(fleet: LocalFleet) -> None:
    for wrong in ({"sasl.password": "wrong"}, {"sasl.username": "nobody"}):
        admin = AdminClient({**fleet.conf, **wrong, "log_level": 0})
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=SECONDS)


def test_a_password_is_rotated_by_the_certificate_of_the_first_user(fleet: LocalFleet, tmp_path: Path) -> None:
    new = tmp_path / "password"
    new.write_text("another-password")
    words = ["users", "rotate", "admin", "--password-file", str(new), "--data-dir", str(fleet.folder)]
    told = subprocess.run([sys.executable, "-m", "ottla", *words], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    for password in (fleet.conf["sasl.password"], "another-password"):
        assert TOPIC in AdminClient({**fleet.conf, "sasl.password": password}).list_topics(timeout=SECONDS).topics


def test_probes_say_a_bare_yes_or_no(fleet: LocalFleet) -> None:
    for port in PROBES:
        assert {page(port, "/livez"), page(port, "/readyz")} == {(200, b"alive\n"), (200, b"ready\n")}
        assert page(port, "/metrics")[0] == 200, "this is its own machine"
    process = psutil.Process(int((fleet.folder / "broker-2" / "ottla.pid").read_text()))
    process.terminate()
    told = set[tuple[int, bytes]]()
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        told.add(page(PROBES[2], "/readyz"))
        time.sleep(0.01)
    assert told <= {(200, b"ready\n"), (503, b"not ready\n"), (0, b"")}, "and no reason"
    eventually(lambda: page(PROBES[2], "/readyz"), lambda seen: seen == (200, b"ready\n"), timeout_s=START_S)


def page(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return 0, b""
    except http.client.HTTPException:
        return 0, b""
    finally:
        connection.close()


def conversation(channel: socket.socket, request: bytes) -> bytes:
    """What comes back until the other side closes. TLS alerts are no content."""
    channel.settimeout(SECONDS)
    received = b""
    try:
        channel.sendall(request)
        while part := channel.recv(65_536):
            received += part
    except (OSError, TimeoutError):
        pass
    is_alert = received[:1] == b"\x15" and len(received) == 7
    return b"" if is_alert else received


def over_tls(fleet: LocalFleet, port: int, context: ssl.SSLContext, request: bytes) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), SECONDS) as plain, context.wrap_socket(plain) as secured:
            return conversation(secured, request)
    except OSError:
        return b""


def ssl_context(keystore: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if keystore is not None:
        context.load_cert_chain(keystore)
    return context


def foreign(fleet: LocalFleet) -> Path:
    """Says to be node 0 of this cluster, by a CA of its own."""
    folder = Path(tempfile.mkdtemp(dir=fleet.folder.parent))
    return Authority(folder, fleet.cluster_id).issue("broker", "0").keystore


def by_grpc(
    fleet: LocalFleet, port: int, credentials: grpc.ChannelCredentials | None, *, as_node: bool = False
) -> bytes:
    cluster_id = fleet.cluster_id
    options = [("grpc.ssl_target_name_override", node_host(cluster_id))]
    address = f"127.0.0.1:{port}"
    channel = (
        grpc.insecure_channel(address)
        if credentials is None
        else grpc.secure_channel(address, credentials, options=options)
    )
    with channel:
        control = ControlStub(channel)
        calls = [
            lambda: control.Submit(pb.SubmitRequest(), timeout=SECONDS, metadata=((CLUSTER_KEY, cluster_id),)),
            lambda: next(channel.stream_stream("/ottla.pb.Replication/Copy")(iter([b""]), timeout=SECONDS)),
        ]
        if not as_node:
            calls.append(lambda: control.DescribeFleet(pb.DescribeFleetRequest(), timeout=SECONDS))
        return b"".join(map(given, calls))


def given(call: Callable[[], object]) -> bytes:
    """Nothing, when the call was refused for what it is, not for what it says."""
    try:
        return repr(call()).encode()
    except StopIteration:
        return b""
    except grpc.RpcError as error:
        refused = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED)
        return b"" if error.code() in refused else str(error.code()).encode()
