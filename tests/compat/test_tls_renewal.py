"""Certificates, trust and users are renewed while clients are connected: nobody is disconnected, and what does not fit
is not taken."""

import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from support.certificates import Authority, Issued
from support.ports import free_port
from support.process import BrokerProcess
from support.sasl_bytes import Talk, metadata
from support.secured import Secured
from support.secured_clients import round_trip, why_not
from support.waiting import eventually

HEALTH = free_port()
SECOND = 1 / 86_400  # of a day
SETTINGS = {"ottla.security.files.check.interval.ms": "100", "ottla.health.port": str(HEALTH)}


def until(condition: Callable[[], bool], what: str) -> None:
    eventually(lambda: (condition(), what), lambda seen: seen[0])


@pytest.fixture(scope="module")
def secured(
    make_broker: Callable[..., BrokerProcess], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Secured:
    folder = tmp_path_factory.mktemp("secured")
    (folder / "users").write_text("bob=bob-secret\n")
    users = {"ottla.sasl.plain.users.file": f"{folder}/users"}
    is_kafka = request.config.getoption("--peer") == "kafka"
    return Secured(make_broker, folder, {} if is_kafka else SETTINGS | users)


@pytest.fixture
def watched(request: pytest.FixtureRequest, secured: Secured) -> Iterator[Secured]:
    """Kafka does not look at its files; after the test the broker has a good one again."""
    if request.config.getoption("--peer") == "kafka":
        pytest.skip("Kafka takes new files only when it is told to")
    yield secured
    put(secured, secured.authority.issue("broker"))


def shown(secured: Secured, listener: str = "TLS") -> int:
    """The serial number that new connections see."""
    context = ssl.create_default_context(cafile=f"{secured.folder}/ca.pem")
    with (
        socket.create_connection((secured.broker.host, secured.ports[listener]), 5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        certificate = client.getpeercert()
        assert certificate is not None
        return int(certificate["serialNumber"], 16)


def put(secured: Secured, issued: Issued) -> None:
    issued.write(secured.folder, "broker")
    until(lambda: shown(secured) == issued.certificate.serial_number, "the new certificate is shown")


def metrics() -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{HEALTH}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def value(name: str, text: str) -> float:
    found = re.search(rf'^{name}{{[^}}]*listener="TLS"[^}}]*}} (\S+)', text, re.MULTILINE)
    assert found, text
    return float(found[1])


def test_a_new_certificate(watched: Secured, name: str) -> None:
    """For new connections; those that there are go on."""
    context = ssl.create_default_context(cafile=f"{watched.folder}/ca.pem")
    producer = Producer(watched.librdkafka("TLS"))
    failed: list[object] = []
    with Talk(watched.broker.host, watched.ports["TLS"], context) as client:
        assert client.code(metadata()) == 0
        for _ in range(3):
            put(watched, watched.authority.issue("broker"))
            for _ in range(50):
                producer.produce(name, b"x", on_delivery=lambda error, _: failed.append(error) if error else None)
            producer.flush(10)
        assert client.code(metadata()) == 0
    assert not failed


def test_what_is_shown_is_told(watched: Secured) -> None:
    issued = watched.authority.issue("broker", days=(-1, 3))
    put(watched, issued)
    until(lambda: f'serial="{issued.certificate.serial_number:X}"' in metrics(), "the serial is told")
    text = metrics()
    assert value("ottla_certificate_not_after_seconds", text) == issued.certificate.not_valid_after_utc.timestamp()
    assert value("ottla_certificate_loaded_seconds", text) > issued.certificate.not_valid_before_utc.timestamp()


def test_a_link_is_swapped(watched: Secured) -> None:
    """As Kubernetes does: the folder of a volume is a link to another one."""
    folder, linked = watched.folder, watched.folder / "broker.pem"
    for version in ("..1", "..2"):
        (folder / version).mkdir()
    first, second = watched.authority.issue("broker"), watched.authority.issue("broker")
    first.write(folder / "..1", "broker")
    second.write(folder / "..2", "broker")
    os.utime(folder / "..1" / "broker.pem", (0, 0))
    os.utime(folder / "..2" / "broker.pem", (0, 0))
    (folder / "..data").symlink_to("..1")
    linked.unlink()
    linked.symlink_to("..data/broker.pem")
    until(lambda: shown(watched) == first.certificate.serial_number, "the first is shown")
    (folder / "..new").symlink_to("..2")
    os.replace(folder / "..new", folder / "..data")
    until(lambda: shown(watched) == second.certificate.serial_number, "the second is shown")
    linked.unlink()


def expired(secured: Secured) -> str:
    issued = secured.authority.issue("broker", days=(-3, -1))
    return issued.key() + issued.chain


def not_yet(secured: Secured) -> str:
    issued = secured.authority.issue("broker", days=(1, 3))
    return issued.key() + issued.chain


def foreign_key(secured: Secured) -> str:
    return secured.authority.issue("broker").key() + secured.authority.issue("broker").chain


def half(secured: Secured) -> str:
    issued = secured.authority.issue("broker")
    return issued.key() + issued.chain[:-40]


def other_subject(secured: Secured) -> str:
    issued = secured.authority.issue("somebody")
    return issued.key() + issued.chain


def fewer_names(secured: Secured) -> str:
    issued = secured.authority.issue("broker", hosts=["localhost"])
    return issued.key() + issued.chain


@pytest.mark.parametrize(
    ("unfit", "reason"),
    [
        (expired, "the certificate of CN=broker expired at"),
        (not_yet, "the certificate of CN=broker is not valid before"),
        (foreign_key, "the private key does not belong to the certificate of CN=broker"),
        (half, "holds no certificate; it needs both, in PEM"),
        (other_subject, "its subject is CN=somebody instead of CN=broker (ssl.allow.dn.changes)"),
        (fewer_names, "127.0.0.1 is no longer among its names (ssl.allow.san.changes)"),
        (lambda secured: "", "is empty"),
    ],
)
def test_what_does_not_fit_is_not_taken(watched: Secured, unfit: Callable[[Secured], str], reason: str) -> None:
    before, lines = shown(watched), refused_lines(watched)
    (watched.folder / "broker.pem").write_text(unfit(watched))
    until(lambda: len(refused_lines(watched)) > len(lines), "it is refused")
    (line,) = set(refused_lines(watched)[len(lines) :])
    assert reason in line and "the new one is not taken, the old one stays" in line
    assert shown(watched) == before


def test_a_certificate_that_is_not_valid_yet_is_taken_when_it_is(watched: Secured) -> None:
    """Whoever issued it has a clock that is ahead; its file does not change again."""
    issued, lines = watched.authority.issue("broker", days=(5 * SECOND, 3)), refused_lines(watched)
    issued.write(watched.folder, "broker")
    until(lambda: len(refused_lines(watched)) > len(lines), "it is refused")
    until(lambda: shown(watched) == issued.certificate.serial_number, "it is taken")
    assert len(refused_lines(watched)) == len(lines) + 1


def refused_lines(secured: Secured) -> list[str]:
    lines = secured.broker.log_path.read_text().splitlines()
    return [line.partition("ottla.security: ")[2] for line in lines if "of TLS://" in line and "not taken" in line]


def test_other_trust(watched: Secured, name: str) -> None:
    """Two authorities at once, so that clients can move from one to the other."""
    other = Authority("Next CA")
    other.issue("dora").write(watched.folder, "dora")
    assert "alert" in why_not(watched.librdkafka("MTLS", certificate="dora"))
    trust = watched.folder / "ca.pem"
    trust.write_text(watched.authority.pem + other.pem)
    until(lambda: let_in(watched, "dora"), "the other one is trusted, too")
    round_trip(watched.librdkafka("MTLS"), name, [b"x"])
    trust.write_text(watched.authority.pem)
    until(lambda: not let_in(watched, "dora"), "it is no longer trusted")


def let_in(secured: Secured, certificate: str) -> bool:
    context = ssl.create_default_context(cafile=f"{secured.folder}/ca.pem")
    context.load_cert_chain(f"{secured.folder}/{certificate}.pem")
    with Talk(secured.broker.host, secured.ports["MTLS"], context) as client:
        return client.code(metadata()) == 0


def test_users_of_a_file(watched: Secured, name: str) -> None:
    users = watched.folder / "users"
    users.write_text("bob=bob-secret\ncarol=c a r o l\n")
    until(lambda: "2 users may log in" in watched.broker.log_path.read_text(), "the file is read")
    round_trip(watched.librdkafka("IN", user="carol", password="c a r o l"), name, [b"x"])
    users.write_text("nonsense")
    until(lambda: "has a line without a name or a password" in watched.broker.log_path.read_text(), "it is refused")
    round_trip(watched.librdkafka("IN", user="carol", password="c a r o l"), f"{name}-2", [b"x"])
    users.write_text("bob=bob-secret\n")


def test_settings_are_changed(secured: Secured, name: str) -> None:
    """The way that Kafka has, too: by AlterConfigs, for one listener."""
    issued = secured.authority.issue("broker")
    path = issued.write(secured.folder, "moved")
    alter(secured, "listener.name.tls.ssl.keystore.location", str(path))
    until(lambda: shown(secured) == issued.certificate.serial_number, "the other file is taken")
    again = secured.authority.issue("broker")
    again.write(secured.folder, "moved")
    alter(secured, "listener.name.tls.ssl.keystore.location", str(path))
    until(lambda: shown(secured) == again.certificate.serial_number, "the same file is read again")
    assert shown(secured, "SAFE") not in (issued.certificate.serial_number, again.certificate.serial_number)
    secured.broker.restart()
    until(lambda: shown(secured) == again.certificate.serial_number, "what was set is in force again")


def alter(secured: Secured, setting: str, text: str) -> None:
    entry = ConfigEntry(setting, text, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": secured.bootstrap("PLAINTEXT")})
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(20)
