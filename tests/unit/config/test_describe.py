"""DescribeConfigs answers against those of a genuine Apache Kafka 4.1.1 in the same situation."""

import json
from pathlib import Path

import pytest
from ottla.config import (
    BROKER,
    ConfigEntry,
    Source,
    configure,
    describe_broker,
    describe_defaults,
    describe_topic,
)
from ottla.config.differences import ADDED, OTHER_DEFAULTS
from ottla.config.loading import load

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
KAFKA = json.loads((GOLDEN / "described.json").read_text())
STATIC = load(str(GOLDEN / "server.properties"), {}, None)

# Kafka's controller writes this one itself when it turns on eligible leader replicas.
FIRST = {"min.insync.replicas": "1"}
FLEET = FIRST | {
    "log.retention.ms": "7000",
    "log.cleaner.threads": "2",
    "message.max.bytes": "2000000",
    "compression.type": "zstd",
}
BROKER_1 = {"log.retention.ms": "8000", "log.cleaner.io.max.bytes.per.second": "1000.5"}
TOPIC = {"retention.ms": "5000", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.25"}

NAMES = {
    Source.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    Source.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    Source.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    Source.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    Source.DEFAULT: "DEFAULT_CONFIG",
}


def as_kafka(entry: ConfigEntry) -> dict[str, object]:
    return {
        "value": entry.value,
        "source": NAMES[entry.source],
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
        "type": entry.type.name,
        "synonyms": [[name, value, NAMES[source]] for name, value, source in entry.synonyms],
    }


def answers(entries: list[ConfigEntry]) -> dict[str, dict[str, object]]:
    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    return {entry.name: as_kafka(entry) for entry in entries}


@pytest.mark.parametrize(
    ("situation", "fleet", "broker", "topic"),
    [
        ("topic: nothing changed", FIRST, {}, {}),
        ("topic: override", FIRST, {}, TOPIC),
        ("topic: override, fleet", FLEET, {}, TOPIC),
        ("topic: override, fleet, broker", FLEET, BROKER_1, TOPIC),
    ],
)
def test_topic_is_described_as_by_kafka(situation, fleet, broker, topic):
    assert answers(describe_topic(STATIC, fleet, broker, topic)) == KAFKA[situation]


@pytest.mark.parametrize(
    ("situation", "fleet", "broker"),
    [
        ("broker: nothing changed", FIRST, {}),
        ("broker: fleet", FLEET, {}),
        ("broker: fleet, broker", FLEET, BROKER_1),
    ],
)
def test_broker_is_described_as_by_kafka(situation, fleet, broker):
    ours = answers(describe_broker(STATIC, fleet, broker))
    added = set(ours) - set(KAFKA[situation])
    assert added == {name for name in ADDED if not BROKER[name].hidden}
    for name, kafkas in KAFKA[situation].items():
        if name in OTHER_DEFAULTS:
            ours[name]["synonyms"] = [synonym for synonym in ours[name]["synonyms"] if synonym[2] != "DEFAULT_CONFIG"]
            kafkas["synonyms"] = [synonym for synonym in kafkas["synonyms"] if synonym[2] != "DEFAULT_CONFIG"]
            if name not in STATIC.explicit:
                ours[name].pop("value"), kafkas.pop("value")
        assert (name, ours[name]) == (name, kafkas)


def test_fleet_defaults_are_described_as_by_kafka():
    assert answers(describe_defaults(STATIC, FLEET)) == KAFKA["default: fleet"]


def test_a_name_nobody_knows_may_be_a_secret():
    static = configure({"my.plugin.password": "hush"}, {"my.plugin.password": "file"})
    entry = next(entry for entry in describe_broker(static, {}, {}) if entry.name == "my.plugin.password")
    assert entry.sensitive and entry.value is None and entry.read_only
    assert entry.synonyms == [("my.plugin.password", None, Source.STATIC_BROKER)]
    assert not entry.is_default


def test_a_listeners_own_password_is_hidden_and_falls_back_on_the_plain_one():
    given = {"listener.name.tls.ssl.key.password": "a", "ssl.key.password": "b"}
    static = configure(given, dict.fromkeys(given, "file"))
    entry = next(e for e in describe_broker(static, {}, {}) if e.name == "listener.name.tls.ssl.key.password")
    assert entry.sensitive and entry.value is None
    assert [synonym.name for synonym in entry.synonyms] == ["listener.name.tls.ssl.key.password", "ssl.key.password"]


def test_internal_segment_size_shows_only_when_set_and_leaves_segment_bytes_alone():
    described = answers(describe_topic(STATIC, {}, {}, {"internal.segment.bytes": "100"}))
    assert described["internal.segment.bytes"]["value"] == "100"
    assert described["segment.bytes"]["value"] == "1073741824"
