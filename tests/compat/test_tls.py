"""TLS with real clients: librdkafka, Java's tools, kafka-python, aiokafka and OpenSSL; and those that get nothing."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from support.certificates import Authority
from support.java import java_tool
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.secured import Secured
from support.secured_clients import round_trip, why_not

TOOLS = "org.apache.kafka.tools"
LARGE = 700_000


@pytest.fixture(scope="module")
def secured(make_broker: Callable[..., BrokerProcess], tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(make_broker, tmp_path_factory.mktemp("secured"))


@pytest.mark.parametrize("listener", ["TLS", "MTLS", "OLD"])
def test_librdkafka(secured: Secured, name: str, listener: str) -> None:
    round_trip(secured.librdkafka(listener), name, [b"%d" % i for i in range(200)])


def test_large_records(secured: Secured, name: str) -> None:
    """Many TLS records for each; the answer is larger than what a transport takes at once."""
    round_trip(secured.librdkafka("TLS"), name, [bytes([i]) * LARGE for i in range(40)])


@pytest.mark.parametrize("listener", ["TLS", "MTLS", "OLD"])
def test_java(secured: Secured, name: str, listener: str) -> None:
    place = ("--bootstrap-server", secured.bootstrap(listener), "--topic", name)
    conf = str(secured.properties(listener))
    lines = "".join(f"v{i}\n" for i in range(50))
    java_tool(f"{TOOLS}.ConsoleProducer", *place, "--producer.config", conf, stdin=lines)
    shown = java_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", *place, "--consumer.config", conf, "--from-beginning", "--max-messages",
        "50", "--timeout-ms", "30000",
    )  # fmt: skip
    assert shown.lines == [f"v{i}" for i in range(50)]


def test_java_goes_on_and_on(secured: Secured, name: str) -> None:
    """Thousands of small requests over one connection; Java pads each record of TLS 1.3."""
    make_topic(secured.broker.bootstrap, name)
    one_by_one = (f"bootstrap.servers={secured.bootstrap('TLS')}", "batch.size=0", "linger.ms=0")
    load = ("--topic", name, "--num-records", "2500", "--record-size", "100", "--throughput", "-1")
    conf = str(secured.properties("TLS"))
    done = java_tool(f"{TOOLS}.ProducerPerformance", *load, "--producer.config", conf, "--producer-props", *one_by_one)
    assert "2500 records sent" in done.text
    assert "TLS without data" not in secured.broker.log_path.read_text()


def test_kafka_python(secured: Secured, name: str) -> None:
    conf = {
        "bootstrap_servers": secured.bootstrap("MTLS"), "security_protocol": "SSL",
        "ssl_cafile": f"{secured.folder}/ca.pem", "ssl_certfile": f"{secured.folder}/alice.pem",
        "ssl_keyfile": f"{secured.folder}/alice.pem",
    }  # fmt: skip
    producer = KafkaProducer(**conf)
    for i in range(20):
        producer.send(name, b"%d" % i)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(name, auto_offset_reset="earliest", consumer_timeout_ms=10_000, **conf)
    assert [next(consumer).value for _ in range(20)] == [b"%d" % i for i in range(20)]
    consumer.close()


def test_aiokafka(secured: Secured, name: str) -> None:
    async def main() -> None:
        context = ssl.create_default_context(cafile=f"{secured.folder}/ca.pem")
        context.load_cert_chain(f"{secured.folder}/alice.pem")
        conf = {
            "bootstrap_servers": secured.bootstrap("MTLS"), "security_protocol": "SSL", "ssl_context": context,
        }  # fmt: skip
        async with AIOKafkaProducer(**conf) as producer:
            for i in range(20):
                await producer.send_and_wait(name, b"%d" % i)
        async with AIOKafkaConsumer(name, auto_offset_reset="earliest", **conf) as consumer:
            assert [(await consumer.getone()).value for _ in range(20)] == [b"%d" % i for i in range(20)]

    asyncio.run(main())


@pytest.mark.parametrize(("version", "alone"), [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")])
def test_openssl(secured: Secured, version: str, alone: str) -> None:
    said = s_client(secured, "TLS", version)
    assert f"{alone}, Cipher is" in said and "Verification: OK" in said


# those who get nothing


def test_a_wrong_authority(secured: Secured) -> None:
    """The client does not believe the broker."""
    assert "certificate verify failed" in why_not(secured.librdkafka("TLS", ca="wrong"))
    shown = java_tool(f"{TOOLS}.TopicCommand", "--bootstrap-server", secured.bootstrap("TLS"), "--list",
                      "--command-config", str(secured.properties("TLS", ca="wrong")), code=1)  # fmt: skip
    assert "SSL handshake failed" in shown.text


@pytest.mark.parametrize(
    ("certificate", "alerts"),
    [
        ("", ("certificate required", "bad certificate")),
        ("mallory", ("unknown ca", "certificate unknown", "bad certificate")),
        ("expired", ("certificate expired", "certificate unknown")),
    ],
)
def test_a_client_that_the_broker_does_not_believe(secured: Secured, certificate: str, alerts: tuple[str, ...]) -> None:
    """It is told by an alert. Java has fewer of them."""
    secured.authority.issue("carol", days=(-3, -1)).write(secured.folder, "expired")
    conf = secured.librdkafka("TLS", certificate=certificate)
    said = why_not(conf | {"bootstrap.servers": secured.bootstrap("MTLS")})
    assert any(alert in said for alert in alerts), said


def test_a_version_that_is_not_allowed(secured: Secured) -> None:
    assert "alert protocol version" in s_client(secured, "OLD", "-tls1_3")
    assert "alert protocol version" in s_client(secured, "TLS", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")


def test_ciphers_that_nobody_wants(secured: Secured) -> None:
    assert "alert handshake failure" in s_client(secured, "OLD", "-cipher", "AES128-SHA@SECLEVEL=0:NULL")


def test_plain_bytes_at_a_tls_port(secured: Secured) -> None:
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": secured.bootstrap("TLS")}).list_topics(timeout=2)
    assert round_trip(secured.librdkafka("TLS"), "after-plain", [b"x"])


def test_tls_at_a_plain_port(secured: Secured) -> None:
    said = why_not(secured.librdkafka("TLS") | {"bootstrap.servers": secured.bootstrap("PLAINTEXT")})
    assert "connecting to a PLAINTEXT broker listener?" in said


def test_half_a_handshake(secured: Secured) -> None:
    """Nobody waits for it, and it does no harm."""
    hello = client_hello()
    waiting = []
    for size in range(1, len(hello), 17):
        waiting.append(socket.create_connection((secured.broker.host, secured.ports["TLS"])))
        waiting[-1].sendall(hello[:size])
    round_trip(secured.librdkafka("TLS"), "beside-halves", [b"x"])
    for each in waiting:
        each.close()


def s_client(secured: Secured, listener: str, *options: str) -> str:
    done = subprocess.run(
        ["openssl", "s_client", "-connect", secured.bootstrap(listener), "-CAfile", f"{secured.folder}/ca.pem",
         *options], input="", capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    return done.stdout + done.stderr


def client_hello() -> bytes:
    context = ssl.create_default_context()
    outgoing = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_pkcs12(make_broker: Callable[..., BrokerProcess], tmp_path: Path, name: str) -> None:
    """Stores as keytool makes them, with Kafka's default type."""
    authority = Authority.in_folder(tmp_path)
    (tmp_path / "broker.p12").write_bytes(authority.issue("broker").pkcs12("pass-word"))
    store = {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": f"{tmp_path}/broker.p12",
             "ssl.keystore.password": "pass-word", "ssl.key.password": "pass-word"}  # fmt: skip
    secured = Secured(make_broker, tmp_path, store)
    secured.authority.write(tmp_path, "unused")
    authority.write(tmp_path)
    round_trip(secured.librdkafka("TLS"), name, [b"x"])
