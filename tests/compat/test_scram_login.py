"""Logging in with SCRAM over a listener: librdkafka, Java, kafka-python and aiokafka, and a password that rotates."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
from ottla.cli.control import ControlClient
from ottla.cli.users import _rotation
from support.java import java_tool
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.scram_connection import set_password

MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
PASSWORD = "a secret, with = and ä"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[OttlaBroker]:
    if request.config.getoption("--peer") != "ottla" or request.config.getoption("--fleet"):
        pytest.skip("is about Ottla's own listeners")
    broker = OttlaBroker(tmp_path_factory.mktemp("broker"))
    broker.settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{free_port()}",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": "50",
        "ottla.grpc.port": str(free_port()),
    }
    broker.start()
    for mechanism in MECHANISMS.values():
        set_password(broker.port, "ann", PASSWORD, mechanism)
    yield broker
    broker.close()


def address(broker: OttlaBroker) -> str:
    return broker.settings["listeners"].rpartition("//")[2]


def librdkafka(broker: OttlaBroker, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> bool:
    """Whether the login is good."""
    failures: list[str] = []
    client = AdminClient(
        {
            "bootstrap.servers": address(broker),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "error_cb": lambda error: failures.append(error.name()),
            "log_level": 0,
        }
    )
    try:
        client.list_topics(timeout=2)
    except KafkaException:
        client.poll(0)
        assert "_AUTHENTICATION" in failures
        return False
    return True


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(secured: OttlaBroker, mechanism: str) -> None:
    assert librdkafka(secured, "ann", PASSWORD, mechanism)
    assert not librdkafka(secured, "ann", "guess", mechanism)
    assert not librdkafka(secured, "nobody", PASSWORD, mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_python_clients(secured: OttlaBroker, mechanism: str) -> None:
    login = {
        "bootstrap_servers": address(secured),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "ann",
        "sasl_plain_password": PASSWORD,
    }
    client = KafkaAdminClient(**login)
    assert client.describe_cluster()
    client.close()
    with pytest.raises(KafkaError):
        KafkaAdminClient(**{**login, "sasl_plain_password": "guess"}, bootstrap_timeout_ms=2000)

    async def ask() -> None:
        client = AIOKafkaAdminClient(**login)
        await client.start()
        assert await client.describe_cluster()
        await client.close()

    asyncio.run(ask())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_java(secured: OttlaBroker, mechanism: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"

    def topics(password: str, code: int) -> str:
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        login = f'sasl.jaas.config={module} required username="ann" password="{password}";'
        text = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n{login}\n"
        file.write_text(text.replace("ä", "\\u00e4"))
        words = ("--bootstrap-server", address(secured), "--command-config", str(file), "--list")
        return java_tool("org.apache.kafka.tools.TopicCommand", *words, code=code).text

    topics(PASSWORD, 0)
    refusal = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
    assert f"{refusal} {mechanism}" in topics("guess", 1)


def test_a_password_rotates_without_an_error(secured: OttlaBroker) -> None:
    set_password(secured.port, "bob", "old")
    assert rotate(secured, "bob", "new", keep_ms=60_000)
    assert librdkafka(secured, "bob", "old")
    assert librdkafka(secured, "bob", "new")
    set_password(secured.port, "bob", "newest")
    assert not librdkafka(secured, "bob", "old")
    assert not librdkafka(secured, "bob", "new")
    assert librdkafka(secured, "bob", "newest")


def rotate(broker: OttlaBroker, user: str, password: str, *, keep_ms: int) -> bool:
    client = ControlClient([f"127.0.0.1:{broker.settings['ottla.grpc.port']}"])
    present = client.describe_scram(user).credentials
    outcome = client.rotate_scram(_rotation(user, present, password, keep_ms)).outcome
    client.close()
    return not outcome.code
