"""What may be set, and what is said about what may not, against a genuine Apache Kafka 4.1.1."""

import json
from pathlib import Path

import pytest
from ottla.config import check_broker_setting, check_topic_setting

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
KAFKA = json.loads((GOLDEN / "refused.json").read_text())

# Kafka compares with its thread pools, which do not exist here.
THREADS = "to more than double the current value", "value should not be greater than double"
OUR_WORDS = {"max.connections.per.ip.overrides"}


def check(row: dict[str, str]) -> str | None:
    if row["scope"] == "topic":
        return check_topic_setting(row["name"], row["value"])
    return check_broker_setting(row["name"], row["value"], per_broker=row["scope"] == "broker")


@pytest.mark.parametrize("row", KAFKA, ids=lambda row: f"{row['scope']}-{row['name']}-{row['value']}")
def test_change_is_answered_as_by_kafka(row):
    said = check(row)
    if row["message"] and any(words in row["message"] for words in THREADS):
        assert said is None
    elif row["name"] in OUR_WORDS and row["scope"] == "broker":
        assert said.startswith("Error parsing configuration property") == bool(row["message"])
    elif row["name"] not in OUR_WORDS:
        assert said == row["message"]


def test_a_file_may_set_what_a_running_broker_may_not_change():
    assert check_broker_setting("log.retention.hours", "5", dynamic=False) is None
    assert check_broker_setting("log.retention.hours", "5") == (
        "Cannot update these configs dynamically: Set(log.retention.hours)"
    )
    assert check_broker_setting("log.retention.hours", "soon", dynamic=False) == (
        "Invalid value soon for configuration log.retention.hours: Not a number of type INT"
    )


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("listener.name.internal.ssl.keystore.location", "/x", True),
        ("listener.name.internal.scram-sha-256.sasl.jaas.config", "…", True),
        ("listener.name.internal.max.connections", "-1", False),
        ("listener.name.sasl.sasl.enabled.mechanisms", "PLAIN", False),
        ("listener.name.sasl.oauthbearer.sasl.server.callback.handler.class", "a.B", False),
        ("listener.name.sasl.ottla.sasl.plain.users.file", "/x", False),
        ("listener.name.tls.ssl.client.auth", "none", False),
        ("listener.name.tls.node.id", "7", False),
        ("ssl.keystore.location", "/x", False),
        ("listeners", "PLAINTEXT://:9092", True),
        ("listeners", "PLAINTEXT://:99999", False),
        ("max.connections.per.ip.overrides", "127.0.0.1:10,host:5", True),
        ("group.consumer.migration.policy", "sideways", False),
    ],
)
def test_listener_settings(name, text, allowed):
    assert (check_broker_setting(name, text) is None) == allowed
