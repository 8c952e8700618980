"""Delegation tokens: kafka-delegation-tokens, logins with them, and every refusal with Kafka's codes."""

import base64
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code
from ottla.cli.kafka.connection import request_bytes, response
from support.frames import Connection
from support.java import java_tool
from support.ports import free_port
from support.process import BrokerProcess
from support.scram_connection import LoginFailed, ScramConnection, set_password
from support.waiting import eventually

SETTINGS = {
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "connection.failed.authentication.delay.ms": "50",
    "delegation.token.expiry.time.ms": "600000",
    "delegation.token.max.lifetime.ms": "3600000",
}
NO_TIME = -1


def with_login(broker: BrokerProcess, key: str | None = "the fleet's secret") -> BrokerProcess:
    """Started, with a listener for those who log in, and three users."""
    listeners = f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{free_port()}"
    mapped: dict[str, str] = {}
    if broker.name == "kafka":
        listeners += f",CONTROLLER://127.0.0.1:{broker._controller_port}"  # type: ignore[attr-defined]
        protocols = ",".join(f"{each}:{each}" for each in ("PLAINTEXT", "SASL_PLAINTEXT"))
        mapped = {"listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocols}"}
    secret = {"delegation.token.secret.key": key} if key else {}
    broker.settings = {**SETTINGS, **secret, **mapped, "listeners": listeners}
    broker.start()
    for user in ("ann", "bob", "eve"):
        set_password(broker.port, user, "secret")
        eventually(lambda user=user: can_log_in(broker, user, "secret"), bool)  # type: ignore[misc]
    return broker


def can_log_in(broker: BrokerProcess, name: str, password: str, *, token: bool = False) -> bool:
    try:
        with logged_in(broker, name, password, token=token):
            return True
    except LoginFailed:
        return False


@pytest.fixture(scope="module")
def secured(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    return with_login(make_broker())


def login_port(broker: BrokerProcess) -> int:
    found = re.search(r"SASL_PLAINTEXT://127.0.0.1:(\d+)", broker.settings["listeners"])
    assert found
    return int(found[1])


def logged_in(broker: BrokerProcess, name: str, password: str = "secret", *, token: bool = False) -> ScramConnection:
    connection = ScramConnection(login_port(broker))
    try:
        connection.log_in(name, password, token=token)
    except LoginFailed:
        connection.socket.close()
        raise
    return connection


@pytest.fixture
def ann(secured: BrokerProcess) -> Iterator[ScramConnection]:
    with logged_in(secured, "ann") as connection:
        yield connection


def ask(connection: Connection, api: tuple[int, int], **fields: Any) -> Any:
    """In our own codec: kio reads no negative times."""
    connection.send(request_bytes(api, fields))
    return response(api, connection.read_frame())


def make(connection: Connection, *renewers: str, kind: str = "User") -> Any:
    named = [{"principal_type": kind, "principal_name": each} for each in renewers]
    owner = {"owner_principal_type": None, "owner_principal_name": None}
    return ask(connection, (38, 3), renewers=named, max_lifetime=-1, **owner)


def renew(connection: Connection, mac: bytes, period_ms: int = -1) -> Any:
    return ask(connection, (39, 2), hmac=mac, renew_period=period_ms)


def end(connection: Connection, mac: bytes, period_ms: int = -1) -> Any:
    return ask(connection, (40, 2), hmac=mac, expiry_time_period=period_ms)


def described(connection: Connection, *owners: str) -> Any:
    """Those of these owners; without any, all."""
    named = [{"principal_type": "User", "principal_name": each} for each in owners]
    return ask(connection, (41, 3), owners=named or None)


def known(connection: Connection, token_id: str) -> bool:
    return any(each.token_id == token_id for each in described(connection).tokens)


def test_kafka_delegation_tokens(secured: BrokerProcess, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"

    def tool(*words: str, login: str = 'username="ann" password="secret"') -> str:
        module = f"org.apache.kafka.common.security.scram.ScramLoginModule required {login};"
        file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config={module}\n")
        there = ("--bootstrap-server", f"127.0.0.1:{login_port(secured)}", "--command-config", str(file))
        return java_tool("org.apache.kafka.tools.DelegationTokenCommand", *there, *words).out

    made = tool("--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    line = next(each.split() for each in made.splitlines() if "User:ann" in each)
    token_id, mac = line[0], line[1]
    assert "User:bob" in made
    assert token_id in tool("--describe", "--owner-principal", "User:ann")
    assert "Completed renew operation" in tool("--renew", "--renew-time-period", "-1", "--hmac", mac)
    by_token = f'username="{token_id}" password="{mac}" tokenauth="true"'
    java = tmp_path / "token.properties"
    java.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config="
        f"org.apache.kafka.common.security.scram.ScramLoginModule required {by_token};\n"
    )
    topics = ("--bootstrap-server", f"127.0.0.1:{login_port(secured)}", "--command-config", str(java), "--list")
    java_tool("org.apache.kafka.tools.TopicCommand", *topics)
    assert "Completed expire operation" in tool("--expire", "--expiry-time-period", "-1", "--hmac", mac)
    assert token_id not in tool("--describe", "--owner-principal", "User:ann")


def test_a_token_from_its_birth_to_its_end(secured: BrokerProcess, ann: ScramConnection) -> None:
    made = make(ann, "bob")
    assert made.error_code == Code.none
    assert (made.principal_name, made.token_requester_principal_name) == ("ann", "ann")
    assert made.expiry_timestamp - made.issue_timestamp == 600_000
    assert made.max_timestamp - made.issue_timestamp == 3_600_000
    password = base64.b64encode(made.hmac).decode()
    eventually(lambda: can_log_in(secured, made.token_id, password, token=True), bool)
    assert not can_log_in(secured, made.token_id, "guess", token=True)
    assert not can_log_in(secured, made.token_id, password)
    with logged_in(secured, made.token_id, password, token=True) as by_token:
        assert timedelta(0) < by_token.last.session_lifetime <= timedelta(minutes=10)
        for answer in (make(by_token), renew(by_token, made.hmac), end(by_token, made.hmac), described(by_token)):
            assert answer.error_code == Code.delegation_token_request_not_allowed
    with logged_in(secured, "bob") as bob:
        renewed = renew(bob, made.hmac)
        assert renewed.error_code == Code.none
        (seen,) = [each for each in described(bob, "ann").tokens if each.token_id == made.token_id]
        assert [each.principal_name for each in seen.renewers] == ["bob"]
        assert seen.hmac == made.hmac
        assert end(bob, made.hmac, 60_000).error_code == Code.none
    ended = end(ann, made.hmac)
    assert ended.error_code == Code.none
    eventually(lambda: can_log_in(secured, made.token_id, password, token=True), lambda can: not can)


def test_refusals(secured: BrokerProcess, ann: ScramConnection) -> None:
    assert make(ann, "x", kind="Group").error_code == Code.invalid_principal_type
    for answer in (renew(ann, b"unknown"), end(ann, b"unknown")):
        assert answer.error_code == Code.delegation_token_not_found
    made = make(ann)
    eventually(lambda: known(ann, made.token_id), bool)
    with logged_in(secured, "eve") as eve:
        for answer in (renew(eve, made.hmac), end(eve, made.hmac)):
            assert answer.error_code == Code.delegation_token_owner_mismatch
    assert ask(ann, (41, 3), owners=[]).tokens == []
    ended = end(ann, made.hmac, 0)
    assert ended.error_code == Code.none
    eventually(lambda: time.time() * 1000, lambda now: now > ended.expiry_timestamp + 1)
    password = base64.b64encode(made.hmac).decode()
    # Genuine brokers let it in until they remove it.
    assert can_log_in(secured, made.token_id, password, token=True) == (secured.name == "kafka")
    assert renew(ann, made.hmac).error_code in (Code.delegation_token_expired, Code.delegation_token_not_found)


def test_nobody_who_did_not_log_in(secured: BrokerProcess) -> None:
    with Connection(secured.port) as connection:
        made = make(connection)
        assert (made.error_code, made.principal_name) == (Code.delegation_token_request_not_allowed, "ANONYMOUS")
        assert (made.issue_timestamp, made.expiry_timestamp, made.max_timestamp) == (NO_TIME,) * 3
        for answer in (renew(connection, b"x"), end(connection, b"x"), described(connection)):
            assert answer.error_code == Code.delegation_token_request_not_allowed


def test_without_a_secret_key_there_are_none(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = with_login(make_broker(), key=None)
    with logged_in(broker, "ann") as connection:
        for answer in (make(connection), renew(connection, b"x"), end(connection, b"x"), described(connection)):
            assert answer.error_code == Code.delegation_token_auth_disabled
