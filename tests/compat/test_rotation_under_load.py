"""Credentials are rotated under producers that log in again every second: not one error, and nothing is lost."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from confluent_kafka import Producer
from ottla.cli.control import ControlClient
from ottla.cli.users import _rotation
from support.librdkafka import make_topic, watermarks
from support.oidc_provider import private_key
from support.ottla_broker import OttlaBroker
from support.ports import free_port
from support.scram_connection import set_password

REAUTH_MS = 1_000
KEEP_OLD_MS = 4_000
LOGINS = 4
PHASE_S = LOGINS * REAUTH_MS / 1000


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[OttlaBroker]:
    if request.config.getoption("--peer") != "ottla" or request.config.getoption("--fleet"):
        pytest.skip("is about Ottla's own listeners")
    folder = tmp_path_factory.mktemp("broker")
    made = OttlaBroker(folder)
    made.settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{made.port},SASL_PLAINTEXT://127.0.0.1:{free_port()}",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,OAUTHBEARER",
        "connections.max.reauth.ms": str(REAUTH_MS),
        "ottla.grpc.port": str(free_port()),
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "fleet",
    }
    made.start()
    yield made
    made.close()


class Load:
    """A producer, one record after the other; what went wrong is in `errors`."""

    def __init__(self, broker: OttlaBroker, topic: str, **login: Any) -> None:
        self.topic = topic
        self.sent = 0
        self.errors: list[str] = []
        make_topic(broker.bootstrap, topic)
        self._broker = broker
        self.producer = Producer(
            {
                "bootstrap.servers": "127.0.0.1:" + broker.settings["listeners"].rpartition(":")[2],
                "security.protocol": "SASL_PLAINTEXT",
                "error_cb": lambda error: self.errors.append(str(error)),
                "linger.ms": 5,
                "log_level": 0,
                **login,
            }
        )

    def work(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.producer.produce(self.topic, b"record", on_delivery=self._delivered)
            self.sent += 1
            self.producer.poll(0.01)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is not None:
            self.errors.append(str(error))

    def check(self) -> None:
        assert self.producer.flush(10) == 0
        assert self.errors == []
        assert watermarks(self._broker.bootstrap, self.topic)[1] == self.sent


def rotate(broker: OttlaBroker, user: str, password: str) -> None:
    client = ControlClient([f"127.0.0.1:{broker.settings['ottla.grpc.port']}"])
    present = client.describe_scram(user).credentials
    outcome = client.rotate_scram(_rotation(user, present, password, KEEP_OLD_MS)).outcome
    client.close()
    assert not outcome.code, outcome


def test_a_password(broker: OttlaBroker, name: str) -> None:
    set_password(broker.port, "ann", "old")
    login = {"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "ann"}
    load = Load(broker, name, **login, **{"sasl.password": "old"})
    load.work(REAUTH_MS / 1000)
    rotate(broker, "ann", "new")
    load.work(KEEP_OLD_MS / 2000)
    load.producer.set_sasl_credentials("ann", "new")
    load.work(KEEP_OLD_MS / 2000 + PHASE_S)  # the old one has ended
    load.check()


def test_who_keeps_the_old_password_is_refused_when_its_time_is_over(broker: OttlaBroker, name: str) -> None:
    """So the producer above did log in again and again."""
    set_password(broker.port, "bob", "old")
    load = Load(broker, name, **{"sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "bob", "sasl.password": "old"})
    rotate(broker, "bob", "new")
    load.work(KEEP_OLD_MS / 2000)
    assert load.errors == []
    load.work(KEEP_OLD_MS / 2000 + PHASE_S)
    assert any("SCRAM-SHA-256" in each for each in load.errors), load.errors


def signed(key: dict[str, Any]) -> tuple[str, float]:
    now = time.time()
    claims = {"sub": "app", "aud": "fleet", "iat": int(now), "exp": int(now) + 60}
    signing = jwt.PyJWK(key, algorithm="RS256").key
    # To librdkafka it lives for two seconds, so that it asks for another one soon.
    return jwt.encode(claims, signing, algorithm="RS256", headers={"kid": key["kid"]}), now + 2


def publish(broker: OttlaBroker, *keys: dict[str, Any]) -> None:
    private = {"d", "p", "q", "dp", "dq", "qi"}
    public = [{name: value for name, value in key.items() if name not in private} for key in keys]
    file = Path(broker.settings["sasl.oauthbearer.jwks.endpoint.url"].removeprefix("file://"))
    file.with_suffix(".new").write_text(json.dumps({"keys": public}))
    file.with_suffix(".new").rename(file)


def test_signing_keys(broker: OttlaBroker, name: str) -> None:
    first, second = private_key("first"), private_key("second")
    publish(broker, first)
    current = [first]
    give: Callable[[str], tuple[str, float]] = lambda _: signed(current[0])  # noqa: E731
    load = Load(broker, name, **{"sasl.mechanism": "OAUTHBEARER", "oauth_cb": give})
    load.work(REAUTH_MS / 1000)
    publish(broker, first, second)
    current[0] = second
    load.work(PHASE_S)
    publish(broker, second)
    load.work(PHASE_S)
    load.check()
