"""franz-go over TLS: every mechanism, a certificate, and what it is told when it may not come in. Go, beside Java's and
librdkafka's logins: another TLS, another SCRAM."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.go import go_program
from support.jwt_issuer import JwtIssuer
from support.librdkafka import make_topic
from support.process import BrokerProcess
from support.scram_connection import set_password
from support.secured import PASSWORD, Secured

TIMEOUT_S = 60.0
MECHANISMS = {"PLAIN": 0, "SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2, "OAUTHBEARER": 0}
REFUSALS = {"OAUTHBEARER": "unexpected data in oauth response"}  # so it takes the error that RFC 7628 puts there
KEPT = [number for number in MECHANISMS.values() if number]  # whose passwords are in the metadata


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> JwtIssuer:
    return JwtIssuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def secured(
    make_broker: Callable[..., BrokerProcess],
    issuer: JwtIssuer,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Secured:
    if request.config.getoption("--peer") != "ottla" or request.config.getoption("--fleet"):
        pytest.skip("is about Ottla's own listeners")
    mechanisms = {"listener.name.safe.sasl.enabled.mechanisms": ",".join(MECHANISMS)}
    made = Secured(make_broker, tmp_path_factory.mktemp("secured"), {**mechanisms, **issuer.settings})
    for mechanism in KEPT:
        set_password(made.broker.port, "bob", PASSWORD, mechanism)
    return made


def round_trip(secured: Secured, listener: str, topic: str, **more: str) -> "subprocess.CompletedProcess[str]":
    make_topic(secured.broker.bootstrap, topic)
    given = {"Bootstrap": secured.bootstrap(listener), "CA": f"{secured.folder}/ca.pem", "Topic": topic, "Value": "hi"}
    command = [str(go_program("roundtrip")), json.dumps({**given, **more})]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)


def login(issuer: JwtIssuer, mechanism: str, *, good: bool) -> dict[str, str]:
    token = issuer.token() if good else issuer.token(aud="others")
    return {"Mechanism": mechanism, "User": "bob", "Password": PASSWORD if good else "guess", "Token": token}


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_mechanisms(secured: Secured, issuer: JwtIssuer, name: str, mechanism: str) -> None:
    done = round_trip(secured, "SAFE", name, **login(issuer, mechanism, good=True))
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
    refused = round_trip(secured, "SAFE", f"{name}-refused", **login(issuer, mechanism, good=False))
    assert refused.returncode == 1 and REFUSALS.get(mechanism, "SASL_AUTHENTICATION_FAILED") in refused.stderr


def test_a_certificate(secured: Secured, name: str, tmp_path: Path) -> None:
    done = round_trip(secured, "MTLS", name, Certificate=f"{secured.folder}/alice.pem")
    assert (done.returncode, done.stdout) == (0, "hi\n"), done.stderr
    refused = round_trip(secured, "MTLS", f"{name}-refused", Certificate=f"{secured.folder}/mallory.pem")
    assert refused.returncode == 1 and "tls: " in refused.stderr
