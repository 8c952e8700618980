"""The table against the definitions of a genuine Apache Kafka 4.1.1."""

import json
from pathlib import Path

import pytest
from ottla.config import BROKER, TOPIC, Mode, Setting, Type, parse, render
from ottla.config.differences import ADDED, OTHER_DEFAULTS
from ottla.config.table import SUBJECTS

GOLDEN = Path(__file__).parents[2] / "golden" / "config"
KAFKA = json.loads((GOLDEN / "definitions.json").read_text())

WITHOUT_BROKER_SETTING = {
    "follower.replication.throttled.replicas": "names partitions of one topic",
    "leader.replication.throttled.replicas": "names partitions of one topic",
    "internal.segment.bytes": "a test's way around the minimum",
    "remote.storage.enable": "a topic opts in",
    "remote.log.copy.disable": "a topic opts in",
    "remote.log.delete.on.disable": "a topic opts in",
}


def facts(setting: Setting) -> dict[str, object]:
    return {
        "type": setting.type.name,
        "default": None if setting.default is None else render(setting.default),
        "valid": None if setting.valid is None else str(setting.valid),
        "importance": setting.importance.name,
        "internal": setting.hidden,
    }


def kafka_facts(scope: str, name: str) -> dict[str, object]:
    known = dict(KAFKA[scope][name])
    if known["valid"] == "non-null string":
        known["valid"] = None  # a text in a file is never null
    return known


def test_topic_settings_are_exactly_kafkas():
    assert {name: facts(setting) for name, setting in TOPIC.items()} == {
        name: kafka_facts("topic", name) for name in KAFKA["topic"]
    }


def test_broker_settings_are_kafkas_and_ours():
    assert set(BROKER) == set(KAFKA["broker"]) | set(ADDED)


@pytest.mark.parametrize("name", sorted(KAFKA["broker"]))
def test_broker_setting_is_declared_as_in_kafka(name):
    ours, kafkas = facts(BROKER[name]), kafka_facts("broker", name)
    if name in OTHER_DEFAULTS:
        assert ours.pop("default") != kafkas.pop("default")
    assert ours == kafkas


def test_update_modes_are_kafkas():
    ours = {name: setting.mode.value for name, setting in BROKER.items() if setting.mode is not Mode.READ_ONLY}
    assert {name: mode for name, mode in ours.items() if name not in ADDED} == KAFKA["modes"]


def test_topic_settings_name_the_broker_settings_that_kafka_does():
    assert {name: list(setting.synonyms) for name, setting in TOPIC.items() if setting.synonyms} == KAFKA["synonyms"]
    assert {name for name, setting in TOPIC.items() if not setting.synonyms} == set(WITHOUT_BROKER_SETTING)


@pytest.mark.parametrize("setting", [*BROKER.values(), *TOPIC.values()], ids=lambda setting: setting.name)
def test_declaration_is_sound(setting):
    assert setting.doc.endswith((".", "JKS", "TRACE"))
    assert len(setting.doc) < 220
    assert setting.effect in ("full", "none")
    assert setting.sensitive == (setting.type is Type.PASSWORD)
    if setting.default is not None:
        assert parse(setting, render(setting.default)) == setting.default


def test_a_setting_is_declared_once():
    names = [setting.name for _, module in SUBJECTS for setting in module.SETTINGS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", [name for name, setting in TOPIC.items() if setting.synonyms])
def test_a_topic_setting_and_its_broker_setting_agree_on_the_effect(name):
    assert BROKER[TOPIC[name].synonyms[0]].effect == TOPIC[name].effect
