"""Logins that hold for a while only (KIP-368): renewed on the same connection, or the connection ends."""

import struct
from collections.abc import Callable

import pytest
from support.java import java_tool
from support.librdkafka import read
from support.process import BrokerProcess
from support.sasl_bytes import CLOSED, Talk, authenticate, handshake, metadata, plain
from support.secured import Secured
from support.waiting import eventually

LIFETIME_MS = 1500
NONE, FAILED, ILLEGAL_STATE = 0, 58, 34
USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="bob-secret" user_eve="e";'


@pytest.fixture(scope="module")
def secured(make_broker: Callable[..., BrokerProcess], tmp_path_factory: pytest.TempPathFactory) -> Secured:
    settings = {
        "listener.name.in.plain.connections.max.reauth.ms": str(LIFETIME_MS),
        "listener.name.in.plain.sasl.jaas.config": USERS,
    }
    return Secured(make_broker, tmp_path_factory.mktemp("secured"), settings)


@pytest.fixture
def client(secured: Secured) -> Talk:
    made = Talk(secured.broker.host, secured.ports["IN"])
    assert made.code(handshake()) == NONE
    assert lifetime_ms(made.ask(authenticate(plain()))) == LIFETIME_MS
    return made


def lifetime_ms(answer: bytes | str) -> int:
    assert isinstance(answer, bytes) and answer[4:6] == b"\0\0"
    return int(struct.unpack_from(">q", answer, len(answer) - 8)[0])


def sentence(answer: bytes | str) -> str:
    assert isinstance(answer, bytes)
    code, size = struct.unpack_from(">hh", answer, 4)
    assert code == FAILED
    return answer[8 : 8 + size].decode()


def test_a_login_is_renewed(client: Talk) -> None:
    for _ in range(3):
        began = [client.code(metadata()) for _ in range(3)]
        assert began == [NONE] * 3
        # Kafka renews at most once a second
        eventually(lambda: client.code(handshake()), lambda code: code == NONE)
        assert lifetime_ms(client.ask(authenticate(plain()))) == LIFETIME_MS


def test_a_login_that_is_not_renewed(client: Talk) -> None:
    """The connection ends with the first request that comes too late."""
    assert client.code(metadata()) == NONE
    eventually(lambda: client.code(metadata()), lambda code: code == CLOSED)


def test_nobody_becomes_somebody_else(client: Talk) -> None:
    assert client.code(handshake()) == NONE
    said = sentence(client.ask(authenticate(plain("eve", "e"))))
    assert said == "Cannot change principals during re-authentication from User.bob: User.eve"
    assert client.read() == CLOSED


def test_a_renewal_with_a_wrong_password(client: Talk) -> None:
    assert client.code(handshake()) == NONE
    assert "Invalid username or password" in sentence(client.ask(authenticate(plain("bob", "no"))))
    assert client.read() == CLOSED


def test_another_mechanism(client: Talk) -> None:
    answer = client.code(handshake("SCRAM-SHA-256"))  # Kafka says nothing before it closes
    assert answer == CLOSED or (answer == 33 and client.read() == CLOSED)


def test_a_request_during_a_renewal(client: Talk) -> None:
    assert client.code(handshake()) == NONE
    answer = client.ask(metadata())  # Kafka answers with an error first
    assert answer == CLOSED or client.read() == CLOSED


def test_java_renews_under_load(secured: Secured, name: str) -> None:
    """For four lifetimes, without an error."""
    conf = secured.properties("IN")
    shown = java_tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", name, "--num-records", "3000", "--record-size", "10",
        "--throughput", "500", "--producer.config", str(conf), "--producer-props",
        f"bootstrap.servers={secured.bootstrap('IN')}", "acks=all", "retries=0",
    )  # fmt: skip
    assert shown.lines[-1].startswith("3000 records sent") and "Exception" not in shown.text
    assert len(read(secured.broker.bootstrap, name)) == 3000
