"""The controller's decisions on settings and features as tables: command in, codes, messages and records out."""

import time
from typing import Any

import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import NewTopic, SettingChange, SettingOperation
from ottla.metadata.model.state import ResourceType
from support.decisions import Fleet, refusal

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
FAR_TOO_LONG = ",".join(f"{number}:0" for number in range(50_000))


def is_list(kind: int, name: str) -> bool:
    return name == "cleanup.policy"


def change(key: str, operation: int, value: str | None = None) -> SettingChange:
    return SettingChange(key, operation, value)


def test_incremental_changes() -> None:
    fleet = Fleet(is_list_setting=is_list, default_setting=lambda kind, name: "delete")
    fleet.create(NewTopic("a", 1, 1, configs=[("retention.ms", "1"), ("segment.bytes", "2")]))
    changes = [
        change("retention.ms", SettingOperation.SET, "5"),
        change("segment.bytes", SettingOperation.DELETE),
        change("cleanup.policy", SettingOperation.APPEND, "compact"),
    ]
    outcome = fleet.ask(ask.IncrementalAlterConfigs([((TOPIC, "a"), changes)]))[0]
    assert outcome.ok
    assert fleet.image.config(TOPIC, "a") == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    fleet.ask(
        ask.IncrementalAlterConfigs([((TOPIC, "a"), [change("cleanup.policy", SettingOperation.SUBTRACT, "delete")])])
    )
    assert fleet.image.config(TOPIC, "a")["cleanup.policy"] == "compact"


@pytest.mark.parametrize("operation", [SettingOperation.APPEND, SettingOperation.SUBTRACT])
def test_a_list_longer_than_a_value_may_be_is_refused_before_it_is_worked_on(operation: int) -> None:
    """Fifty thousand items against as many took fifteen seconds of the control loop."""
    fleet = Fleet(is_list_setting=lambda kind, name: True, default_setting=lambda kind, name: FAR_TOO_LONG)
    fleet.create(NewTopic("a", 1, 1))
    began = time.process_time()
    value = ",".join(f"{number}:1" for number in range(50_000))
    outcome = fleet.ask(ask.IncrementalAlterConfigs([((TOPIC, "a"), [change("list", operation, value)])]))[0]
    assert outcome.code is Code.invalid_config
    assert "exceeds the maximum value size of 32767" in outcome.message
    assert time.process_time() - began < 1.0


def test_lists_as_long_as_values_may_be_are_joined_in_no_time() -> None:
    fleet = Fleet(is_list_setting=lambda kind, name: True, default_setting=lambda kind, name: FAR_TOO_LONG)
    fleet.create(NewTopic("a", 1, 1))
    began = time.process_time()
    value = ",".join(f"{number:x}" for number in range(6_000))
    subtraction = [change("list", SettingOperation.SUBTRACT, value)]
    fleet.ask(ask.IncrementalAlterConfigs([((TOPIC, "a"), subtraction)]))
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("resource", "changes", "code", "message"),
    [
        (
            (TOPIC, "missing"),
            [change("k", 0, "v")],
            Code.unknown_topic_or_partition,
            "The topic 'missing' does not exist.",
        ),
        ((TOPIC, ""), [change("k", 0, "v")], Code.invalid_request, "Default topic resources are not allowed."),
        ((TOPIC, "a b"), [change("k", 0, "v")], Code.invalid_topic_exception, "Topic name is invalid"),
        ((TOPIC, "a"), [change("bad", 0, "v")], Code.invalid_config, "no such setting: bad"),
        (
            (TOPIC, "a"),
            [change("k", 0, "v" * 32768)],
            Code.invalid_config,
            "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes.",
        ),
        ((TOPIC, "a"), [change("k", 0)], Code.invalid_request, "Null value not supported for : k"),
        (
            (TOPIC, "a"),
            [change("k", 2, "v")],
            Code.invalid_config,
            "Can't APPEND to key k because its type is not LIST.",
        ),
        (
            (TOPIC, "a"),
            [change("k", 3, "v")],
            Code.invalid_config,
            "Can't SUBTRACT to key k because its type is not LIST.",
        ),
        ((TOPIC, "a"), [change("k", 9, "v")], Code.invalid_request, "Unknown operation 9"),
        (
            (TOPIC, "a"),
            [change("k", 0, "v"), change("k", 1)],
            Code.invalid_request,
            "Error due to duplicate config keys",
        ),
        (
            (BROKER, "x"),
            [change("k", 0, "v")],
            Code.invalid_request,
            "Unable to parse broker name as a base 10 number.",
        ),
        ((BROKER, "-1"), [change("k", 0, "v")], Code.invalid_request, "Invalid negative broker ID."),
        ((BROKER, "9"), [change("k", 0, "v")], Code.broker_id_not_registered, "No node with id 9 found."),
        ((99, "a"), [change("k", 0, "v")], Code.invalid_request, "Unknown resource type 99"),
        (
            (ResourceType.GROUP, ""),
            [change("k", 0, "v")],
            Code.invalid_request,
            "Default group resources are not allowed.",
        ),
        ((ResourceType.GROUP, "x" * 40_000), [change("k", 0, "v")], Code.invalid_request, "1000 bytes at most"),
    ],
)
def test_refused_settings(resource: Any, changes: list[SettingChange], code: Code, message: str) -> None:
    fleet = Fleet(check_config=lambda kind, name, value: f"no such setting: {name}" if name == "bad" else None)
    fleet.create(NewTopic("a", 1, 1))
    good = ((BROKER, ""), [change("fine", 0, "1")])
    refused, fine = fleet.ask(ask.IncrementalAlterConfigs([(resource, changes), good]))
    assert (refused.value, refused.code) == (resource, code)
    assert message in refused.message
    assert fine.ok and fleet.image.configs == {(BROKER, ""): {"fine": "1"}}


def test_full_alter_replaces() -> None:
    fleet = Fleet()
    fleet.create(NewTopic("a", 1, 1, configs=[("x", "1"), ("y", "2")]))
    fleet.ask(ask.AlterConfigs([((TOPIC, "a"), {"y": "3", "z": "4"})], validate_only=True))
    assert fleet.image.config(TOPIC, "a") == {"x": "1", "y": "2"}
    fleet.ask(ask.AlterConfigs([((TOPIC, "a"), {"y": "3", "z": "4"})]))
    assert fleet.image.config(TOPIC, "a") == {"y": "3", "z": "4"}
    twice = [((TOPIC, "a"), {"y": "5"}), ((TOPIC, "a"), {"y": "6"})]
    assert [each.code for each in fleet.ask(ask.AlterConfigs(twice))] == [Code.invalid_request]
    assert fleet.image.config(TOPIC, "a")["y"] == "3"


def test_an_unchanged_broker_setting_is_written_again() -> None:
    fleet = Fleet()
    command = ask.IncrementalAlterConfigs([((BROKER, "0"), [change("k", 0, "v")])])
    fleet.ask(command)
    version = fleet.image.version
    fleet.ask(command)
    assert fleet.image.version == version + 1


@pytest.mark.parametrize(
    ("name", "level", "kind", "message"),
    [
        ("metadata.version", 28, 1, "Local controller 0 only supports versions 7-27"),
        ("metadata.version", 6, 2, "Local controller 0 only supports versions 7-27"),
        ("metadata.version", 26, 1, "Can't downgrade the version of this feature without setting the upgrade type"),
        ("metadata.version", 20, 2, "Invalid metadata.version 20. Refusing to perform the requested downgrade"),
        ("metadata.version", 20, 3, "Unsafe metadata downgrade is not supported in this version."),
        ("transaction.version", 3, 1, "Local controller 0 only supports versions 0-2"),
        ("no.such.feature", 1, 1, "Local controller 0 does not support this feature."),
        ("metadata.version", -1, 1, "A feature version cannot be less than 0."),
        ("metadata.version", 27, 7, "The controller does not support the given upgrade type."),
    ],
)
def test_refused_features(name: str, level: int, kind: int, message: str) -> None:
    error = refusal(Fleet(), ask.UpdateFeatures([(name, level, kind)]))
    assert error.code is Code.invalid_update_version
    assert message in str(error)
    assert str(error).startswith("The update failed for all features since the following feature had an error: ")


def test_features_change_with_their_epoch() -> None:
    fleet = Fleet()
    fleet.ask(ask.UpdateFeatures([("metadata.version", 26, 2)], validate_only=True))
    assert fleet.image.features["metadata.version"] == 27
    fleet.ask(ask.UpdateFeatures([("metadata.version", 26, 2), ("eligible.leader.replicas.version", 0, 2)]))
    assert fleet.image.features == {"metadata.version": 26, "group.version": 1, "transaction.version": 2}
    assert fleet.image.features_epoch == fleet.image.version
