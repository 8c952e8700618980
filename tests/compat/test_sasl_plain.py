"""SASL/PLAIN with real clients, and the same conversations byte by byte: codes, sentences and silences of Kafka."""

import asyncio
import ssl
import struct
import time
from collections.abc import Callable, Sequence

import pytest
from aiokafka import AIOKafkaProducer
from kafka import KafkaProducer
from support.java import java_tool
from support.process import BrokerProcess
from support.sasl_bytes import CLOSED, Talk, api_versions, authenticate, handshake, metadata, plain, raw
from support.secured import PASSWORD, Secured
from support.secured_clients import round_trip, why_not

TOOLS = "org.apache.kafka.tools"
NONE, UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED = 0, 33, 34, 58
WRONG = "Authentication failed: Invalid username or password"
NO_PASSWORD, NO_NAME = "Authentication failed: password not specified", "Authentication failed: username not specified"
MALFORMED = "Invalid SASL/PLAIN response: expected 3 tokens, got "
OUT_OF_ORDER = "34 or closed"  # Kafka says ILLEGAL_SASL_STATE before it closes, Ottla only closes
OTHER = "Authentication failed: Client requested an authorization id that is different from username"
ACROSS = [pytest.param("IN", id="IN"), pytest.param("SAFE", id="SAFE")]
Step = tuple[bytes, int | str]


@pytest.fixture(scope="module")
def secured(make_broker: Callable[..., BrokerProcess], tmp_path_factory: pytest.TempPathFactory) -> Secured:
    return Secured(make_broker, tmp_path_factory.mktemp("secured"), {"sasl.server.max.receive.size": "100000"})


def talk(secured: Secured, listener: str = "IN") -> Talk:
    context = ssl.create_default_context(cafile=f"{secured.folder}/ca.pem") if listener == "SAFE" else None
    return Talk(secured.broker.host, secured.ports[listener], context)


@pytest.mark.parametrize("listener", ACROSS)
def test_librdkafka(secured: Secured, name: str, listener: str) -> None:
    round_trip(secured.librdkafka(listener), name, [b"%d" % i for i in range(200)])


@pytest.mark.parametrize("listener", ACROSS)
def test_java(secured: Secured, name: str, listener: str) -> None:
    place = ("--bootstrap-server", secured.bootstrap(listener), "--topic", name)
    conf = str(secured.properties(listener))
    java_tool(f"{TOOLS}.ConsoleProducer", *place, "--producer.config", conf, stdin="a\nb\n")
    shown = java_tool(
        f"{TOOLS}.consumer.ConsoleConsumer", *place, "--consumer.config", conf, "--from-beginning", "--max-messages",
        "2", "--timeout-ms", "30000",
    )  # fmt: skip
    assert shown.lines == ["a", "b"]


def test_kafka_python(secured: Secured, name: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=secured.bootstrap("SAFE"), security_protocol="SASL_SSL", sasl_mechanism="PLAIN",
        ssl_cafile=f"{secured.folder}/ca.pem", sasl_plain_username="bob", sasl_plain_password=PASSWORD,
    )  # fmt: skip
    assert producer.send(name, b"x").get(20).offset == 0
    producer.close()


def test_aiokafka(secured: Secured, name: str) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=secured.bootstrap("IN"), security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN",
            sasl_plain_username="bob", sasl_plain_password=PASSWORD,
        )  # fmt: skip
        async with producer:
            assert (await producer.send_and_wait(name, b"x")).offset == 0

    asyncio.run(main())


@pytest.mark.parametrize("listener", ACROSS)
def test_a_wrong_password(secured: Secured, listener: str) -> None:
    assert WRONG in why_not(secured.librdkafka(listener, password="no"))
    shown = java_tool(f"{TOOLS}.TopicCommand", "--bootstrap-server", secured.bootstrap(listener), "--list",
                      "--command-config", str(secured.properties(listener, password="no")), code=1)  # fmt: skip
    assert WRONG in shown.text


def test_an_unknown_mechanism(secured: Secured) -> None:
    """The client learns which there are."""
    said = why_not(secured.librdkafka("IN", sasl_mechanism="SCRAM-SHA-512"))
    assert "broker's supported mechanisms: PLAIN" in said
    with talk(secured) as client:
        answer = client.ask(handshake("SCRAM-SHA-512"))
        assert answer == struct.pack(">ihi", 1, UNSUPPORTED_MECHANISM, 1) + b"\0\5PLAIN"
        assert client.read() == CLOSED


def test_a_client_that_does_not_log_in(secured: Secured) -> None:
    said = why_not({"bootstrap.servers": secured.bootstrap("IN")})
    assert "authentication" in said or "Disconnected" in said or "ALL_BROKERS_DOWN" in said


@pytest.mark.parametrize("listener", ACROSS)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([(api_versions(), NONE), (handshake(), NONE), (authenticate(plain()), NONE), (metadata(), NONE)],
                     id="as it should be"),
        pytest.param([(handshake(), NONE), (authenticate(plain()), NONE), (metadata(), NONE)], id="no versions"),
        pytest.param([(api_versions(), NONE), (api_versions(), CLOSED)], id="versions twice"),
        pytest.param([(handshake(), NONE), (api_versions(), OUT_OF_ORDER)], id="versions during the login"),
        pytest.param([(metadata(), CLOSED)], id="a request at once"),
        pytest.param([(api_versions(), NONE), (metadata(), CLOSED)], id="a request after versions"),
        pytest.param([(authenticate(plain()), CLOSED)], id="authenticate at once"),
        pytest.param([(handshake(), NONE), (handshake(), OUT_OF_ORDER), (b"", CLOSED)], id="handshake twice"),
        pytest.param([(handshake(), NONE), (authenticate(plain("bob", "no")), FAILED), (b"", CLOSED)], id="wrong"),
        pytest.param([(raw(b"\0" * 7), CLOSED)], id="no header"),
        pytest.param([(raw(b""), CLOSED)], id="nothing"),
        pytest.param([(b"GET / HTTP/1.1\r\n\r\n", CLOSED)], id="HTTP"),
        pytest.param([(struct.pack(">i", 100_001) + b"\0\x12\0\0", CLOSED)], id="too large"),
        pytest.param([(struct.pack(">i", -1), CLOSED)], id="negative"),
        pytest.param([(handshake(), NONE), (authenticate(plain()), NONE), (authenticate(plain()), ILLEGAL_STATE),
                      (metadata(), NONE)], id="authenticate again"),
    ],
)  # fmt: skip
def test_order(secured: Secured, listener: str, steps: Sequence[Step]) -> None:
    with talk(secured, listener) as client:
        for request, expected in steps:
            found = client.code(request)
            assert found == expected or (expected is OUT_OF_ORDER and found in (ILLEGAL_STATE, CLOSED))
        if steps[-1][1] not in (NONE, CLOSED):
            assert client.read() == CLOSED


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (plain("bob", "no"), WRONG),
        (plain("eve", "bob-secret"), WRONG),
        (plain(authorized="eve"), OTHER),
        (plain("bob", ""), NO_PASSWORD),
        (plain("", "x"), NO_NAME),
        (b"", f"{MALFORMED}1"),
        (b"\xff\xfe\0\xff", f"{MALFORMED}2"),
        (plain() + b"\0more", f"{MALFORMED}4"),
    ],
)
def test_sentences(secured: Secured, message: bytes, sentence: str) -> None:
    """Late, and then nothing more."""
    with talk(secured) as client:
        client.ask(handshake())
        began = time.monotonic()
        answer = client.ask(authenticate(message))
        assert time.monotonic() - began >= 0.09, "connection.failed.authentication.delay.ms is 100"
        assert isinstance(answer, bytes)
        code, size = struct.unpack_from(">hh", answer, 4)
        assert (code, answer[8 : 8 + size].decode()) == (FAILED, sentence)
        assert client.ask(metadata()) == CLOSED


def test_the_old_way_without_headers(secured: Secured) -> None:
    """After SaslHandshake v0 the mechanism's messages come bare, with a length before them."""
    with talk(secured) as client:
        assert client.code(handshake(version=0)) == NONE
        assert client.ask(raw(plain())) == b""
        assert client.code(metadata()) == NONE
    with talk(secured) as client:
        assert client.code(handshake(version=0)) == NONE
        assert client.ask(raw(plain("bob", "no"))) == CLOSED


@pytest.mark.parametrize("listener", ["PLAINTEXT", "TLS"])
def test_where_nobody_logs_in(secured: Secured, listener: str) -> None:
    context = ssl.create_default_context(cafile=f"{secured.folder}/ca.pem") if listener == "TLS" else None
    with Talk(secured.broker.host, secured.ports[listener], context) as client:
        assert client.code(handshake()) == ILLEGAL_STATE
        assert client.code(authenticate(plain())) == ILLEGAL_STATE
        assert client.code(metadata()) == NONE


def test_byte_by_byte(secured: Secured) -> None:
    with talk(secured) as client:
        for byte in api_versions() + handshake():
            client.socket.sendall(bytes([byte]))
        assert isinstance(client.read(), bytes) and isinstance(client.read(), bytes)
        for byte in authenticate(plain()):
            client.socket.sendall(bytes([byte]))
        assert client.read() == struct.pack(">ihhiq", 1, 0, 0, 0, 0)
