"""OAUTHBEARER and a real OpenID provider: librdkafka's OIDC method and its callback, Java's flow, keys that rotate."""

import base64
import json
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kio.schema.errors import ErrorCode as Code
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse
from support.frames import Connection
from support.java import java_tool
from support.oidc_provider import CLIENT, SECRET, OidcProvider
from support.ottla_broker import OttlaBroker
from support.ports import free_port

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[OidcProvider]:
    if request.config.getoption("--peer") != "ottla" or request.config.getoption("--fleet"):
        pytest.skip("is about Ottla's own listeners")
    made = OidcProvider(tmp_path_factory.mktemp("provider"))
    made.start(["first"])
    yield made
    made.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, provider: OidcProvider) -> Iterator[OttlaBroker]:
    broker = OttlaBroker(tmp_path_factory.mktemp("broker"))
    broker.settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{broker.port},SASL_PLAINTEXT://127.0.0.1:{free_port()}",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "connection.failed.authentication.delay.ms": "50",
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.issuer": provider.issuer,
        "sasl.oauthbearer.expected.audience": "fleet",
        "sasl.oauthbearer.clock.skew.seconds": "5",
    }
    broker.start()
    yield broker
    broker.close()


def port(broker: OttlaBroker) -> int:
    return int(broker.settings["listeners"].rpartition(":")[2])


def token_of(provider: OidcProvider) -> str:
    body = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": "kafka"}).encode()
    basic = base64.b64encode(f"{CLIENT}:{urllib.parse.quote(SECRET)}".encode()).decode()
    request = urllib.request.Request(provider.token_url, body, {"Authorization": f"Basic {basic}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        token: str = json.load(answer)["access_token"]
    return token


def log_in(broker: OttlaBroker, token: str) -> Any:
    """The last answer of the login."""
    with Connection(port(broker)) as connection:
        connection.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), SaslHandshakeResponse)
        first = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        answer = connection.ask(SaslAuthenticateRequest(auth_bytes=first), SaslAuthenticateResponse)
        if answer.auth_bytes:
            assert json.loads(answer.auth_bytes) == {"status": "invalid_token"}
            answer = connection.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), SaslAuthenticateResponse)
        return answer


def librdkafka(broker: OttlaBroker, **settings: Any) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{port(broker)}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "log_level": 0,
            **settings,
        }
    )


def test_librdkafka_gets_its_tokens_itself(secured: OttlaBroker, provider: OidcProvider) -> None:
    oidc = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": CLIENT,
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.token.endpoint.url": provider.token_url,
        "sasl.oauthbearer.scope": "kafka",
    }
    client = librdkafka(secured, **oidc)
    client.poll(1)
    assert client.list_topics(timeout=10).brokers


def test_librdkafka_is_given_a_token(secured: OttlaBroker, provider: OidcProvider) -> None:
    def give(_: str) -> tuple[str, float]:
        return token_of(provider), time.time() + 100

    client = librdkafka(secured, oauth_cb=give)
    client.poll(1)
    assert client.list_topics(timeout=10).brokers
    with pytest.raises(KafkaException):
        bad = librdkafka(secured, oauth_cb=lambda _: ("a.b.c", time.time() + 100))
        bad.poll(1)
        bad.list_topics(timeout=2)


def test_java(secured: OttlaBroker, provider: OidcProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "client.properties"
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.token_url}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", allowed)
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.login.callback.handler.class={HANDLER}\nsasl.oauthbearer.token.endpoint.url={provider.token_url}\n"
        f'sasl.jaas.config={MODULE} required clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka";\n'
    )
    words = ("--bootstrap-server", f"127.0.0.1:{port(secured)}", "--command-config", str(file))
    topics = "org.apache.kafka.tools.TopicCommand"
    java_tool(topics, *words, "--create", "--topic", "by-token")
    assert "by-token" in java_tool(topics, *words, "--list").out


def test_a_login_holds_as_long_as_its_token(secured: OttlaBroker, provider: OidcProvider) -> None:
    answer = log_in(secured, token_of(provider))
    assert answer.error_code is Code.none
    assert 100 < answer.session_lifetime.total_seconds() <= 120


def test_bad_tokens(secured: OttlaBroker, provider: OidcProvider) -> None:
    head, claims, signature = token_of(provider).split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for bad in (f"{none}.{claims}.", f"{head}.{claims}.", f"{head}.{claims}.{signature[:-6]}AAAAAA"):
        answer = log_in(secured, bad)
        assert answer.error_code is Code.sasl_authentication_failed
        assert answer.error_message == '{"status":"invalid_token"}'


def test_new_keys_are_known_at_once_and_old_ones_no_longer(secured: OttlaBroker, provider: OidcProvider) -> None:
    before = token_of(provider)
    assert log_in(secured, before).error_code is Code.none
    provider.stop()
    assert log_in(secured, before).error_code is Code.none, "keys that are known stay good"
    provider.start(["second"])
    assert log_in(secured, token_of(provider)).error_code is Code.none, "not one login fails"
    assert log_in(secured, before).error_code is Code.sasl_authentication_failed
