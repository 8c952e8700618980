"""References to the environment in a file of settings."""

import pytest
from ottla.config.providers import provided
from ottla.errors import Refusal

CLASS = {"config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider"}


def _provided(given: dict[str, str], **environment: str) -> dict[str, str]:
    return provided(given, dict.fromkeys(given, "file, line 1"), environment)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EXTERNAL://${env:HOST_IP}:30092", "EXTERNAL://10.0.0.7:30092"),
        ("${env::HOST_IP}", "10.0.0.7"),
        ("${file:HOST_IP}", "${file:HOST_IP}"),
        ("$HOST_IP ${HOST_IP}", "$HOST_IP ${HOST_IP}"),
    ],
)
def test_references(text, expected):
    assert _provided({"config.providers": "env", **CLASS, "a": text}, HOST_IP="10.0.0.7") == {"a": expected}


def test_nothing_is_replaced_unless_a_provider_is_declared():
    assert _provided({"a": "${env:HOST_IP}"}, HOST_IP="x") == {"a": "${env:HOST_IP}"}


def test_a_missing_variable_is_refused():
    with pytest.raises(Refusal, match="no variable HOST_IP"):
        _provided({"config.providers": "env", "a": "${env:HOST_IP}"})


def test_other_providers_are_refused():
    with pytest.raises(Refusal, match="only EnvVarConfigProvider"):
        _provided({"config.providers": "v", "config.providers.v.class": "com.example.Vault"})
