"""With eligible leader replicas, controller and leaders go by one min.insync.replicas, kept in the metadata."""

import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import SettingChange, SettingOperation
from ottla.metadata.decisions.duties import at_activation
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import ConfigResource, ResourceType
from support.decisions import Fleet

NAME = "min.insync.replicas"
FLEET_WIDE = (ResourceType.BROKER, "")
TOPIC = (ResourceType.TOPIC, "a")


def change(resource: ConfigResource, value: str | None) -> ask.IncrementalAlterConfigs:
    operation = SettingOperation.DELETE if value is None else SettingOperation.SET
    return ask.IncrementalAlterConfigs([(resource, [SettingChange(NAME, operation, value)])])


def test_a_new_fleet_writes_down_what_its_first_controller_was_started_with() -> None:
    fleet = Fleet(brokers=0, min_insync_replicas=2)
    fleet.image = Image("cluster")
    fleet.apply(at_activation(fleet.image, fleet.context()))
    assert fleet.image.features["eligible.leader.replicas.version"] == 1
    assert fleet.image.config(*FLEET_WIDE) == {NAME: "2"}
    fleet.settings["min_insync_replicas"] = 3
    assert at_activation(fleet.image, fleet.context()) == [], "only once"


@pytest.mark.parametrize(
    ("resource", "value", "message"),
    [
        (FLEET_WIDE, None, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
        ((ResourceType.BROKER, "0"), "2", "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        ((ResourceType.BROKER, "0"), None, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
    ],
)
def test_what_must_not_change(resource: ConfigResource, value: str | None, message: str) -> None:
    fleet = Fleet()
    fleet.ask(change(FLEET_WIDE, "1"))
    (outcome,) = fleet.ask(change(resource, value))
    assert (outcome.code, outcome.message) == (Code.invalid_config, message)
    assert fleet.image.configs == {FLEET_WIDE: {NAME: "1"}}


def test_a_full_alter_that_forgets_it_is_refused() -> None:
    fleet = Fleet()
    fleet.ask(change(FLEET_WIDE, "1"))
    (outcome,) = fleet.ask(ask.AlterConfigs([(FLEET_WIDE, {})]))
    assert outcome.code is Code.invalid_config


def test_without_the_feature_it_is_a_setting_like_others() -> None:
    fleet = Fleet(min_insync_replicas=2)
    fleet.ask(ask.UpdateFeatures([("eligible.leader.replicas.version", 0, 2)]))
    assert fleet.ask(change((ResourceType.BROKER, "0"), "3"))[0].ok
    fleet.ask(ask.UpdateFeatures([("eligible.leader.replicas.version", 1, 1)]))
    assert fleet.image.configs == {FLEET_WIDE: {NAME: "2"}}, "turning it on makes it one for all"


@pytest.mark.parametrize(("resource", "value"), [(TOPIC, "1"), (FLEET_WIDE, "1")])
def test_a_lower_minimum_ends_eligibility(resource: ConfigResource, value: str) -> None:
    fleet = Fleet(brokers=3)
    fleet.ask(change(FLEET_WIDE, "2"))
    fleet.topic([0, 1, 2])
    fleet.topic([0, 1, 2], name="own", min_insync_replicas="2")
    for topic in ("a", "own"):
        fleet.sync(0, topic=topic)
    assert fleet.partition().elr == fleet.partition(topic="own").elr == (1, 2)
    fleet.ask(change(resource, value))
    assert fleet.partition().elr == ()
    assert fleet.partition(topic="own").elr == (1, 2), "it has its own setting"
    assert fleet.partition().leader_epoch == 0


def test_more_than_the_replicas_there_are_is_not_asked_for() -> None:
    fleet = Fleet(brokers=2, min_insync_replicas=5)
    fleet.topic([0, 1])
    fleet.topic([0], name="alone")
    fleet.fence(1)
    assert (fleet.partition().elr, fleet.partition(topic="alone").elr) == ((1,), ())
