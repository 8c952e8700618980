"""The controller's decisions as tables: command in, codes, messages and records out."""

import uuid
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata import commands as ask
from ottla.metadata.commands import NewPartitions, NewTopic, SettingChange, SettingOperation, TopicRef
from ottla.metadata.features import SUPPORTED_FEATURES
from ottla.metadata.state import NO_LEADER, ResourceType
from support.decisions import CLUSTER, Fleet

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


def refusal(fleet: Fleet, command: ask.Command[Any]) -> KafkaError:
    version = fleet.image.version
    with pytest.raises(KafkaError) as caught:
        fleet.ask(command)
    assert fleet.image.version == version
    return caught.value


# -- create topics


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (NewTopic("", 1, 1), Code.invalid_topic_exception, "Topic name is invalid: the empty string is not allowed"),
        (NewTopic(".", 1, 1), Code.invalid_topic_exception, "Topic name is invalid: '.' is not allowed"),
        (NewTopic("..", 1, 1), Code.invalid_topic_exception, "Topic name is invalid: '..' is not allowed"),
        (NewTopic("a b", 1, 1), Code.invalid_topic_exception, "contains one or more characters other than ASCII"),
        (NewTopic("a\n", 1, 1), Code.invalid_topic_exception, "contains one or more characters other than ASCII"),
        (NewTopic("ä", 1, 1), Code.invalid_topic_exception, "contains one or more characters other than ASCII"),
        (NewTopic("x" * 250, 1, 1), Code.invalid_topic_exception, "longer than the max allowed length 249"),
        (NewTopic("taken", 1, 1), Code.topic_already_exists, "Topic 'taken' already exists."),
        (
            NewTopic("with_dot", 1, 1),
            Code.invalid_topic_exception,
            "Topic 'with_dot' collides with existing topic: with.dot",
        ),
        (
            NewTopic("__cluster_metadata", 1, 1),
            Code.invalid_request,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        (
            NewTopic("a", 0, 1),
            Code.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic("a", -2, 1),
            Code.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            NewTopic("a", 1, 0),
            Code.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        ),
        (NewTopic("a", 1, -2), Code.invalid_replication_factor, "Replication factor must be larger than 0"),
        (
            NewTopic("a", 1, 2),
            Code.invalid_replication_factor,
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
            "only 1 broker(s) are registered.",
        ),
        (NewTopic("a", 1, -1, [(0, [0])]), Code.invalid_request, "but numPartitions was not set to -1"),
        (NewTopic("a", -1, 1, [(0, [0])]), Code.invalid_request, "but replication factor was not set to -1"),
        (
            NewTopic("a", assignments=[(0, [7])]),
            Code.invalid_replica_assignment,
            "includes broker 7, but no such broker is registered",
        ),
        (
            NewTopic("a", assignments=[(0, [0, 0])]),
            Code.invalid_replica_assignment,
            "includes the broker 0 more than once",
        ),
        (NewTopic("a", assignments=[(0, [])]), Code.invalid_replica_assignment, "includes an empty replica list"),
        (
            NewTopic("a", assignments=[(1, [0])]),
            Code.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            NewTopic("a", assignments=[(0, [0]), (0, [0])]),
            Code.invalid_replica_assignment,
            "Found multiple manual partition assignments for partition 0",
        ),
        (
            NewTopic("a", 1, 1, configs=[("x", None)]),
            Code.invalid_config,
            "Null value not supported for topic configs: x",
        ),
        (NewTopic("a", 1, 1, configs=[("bad", "1")]), Code.invalid_config, "no such setting: bad"),
    ],
)
def test_refused_topics(topic: NewTopic, code: Code, message: str) -> None:
    fleet = Fleet(check_config=lambda kind, name, value: f"no such setting: {name}" if name == "bad" else None)
    fleet.create(NewTopic("taken", 1, 1), NewTopic("with.dot", 1, 1))
    before = fleet.image
    refused, fine = fleet.create(topic, NewTopic("beside", 1, 1))
    assert (refused.code, fine.code) == (code, Code.none)
    assert message in refused.message
    assert fleet.image.topics.keys() - before.topics.keys() == {"beside"}


def test_created_topics_have_everything() -> None:
    fleet = Fleet(default_partitions=3)
    given, defaulted, manual = fleet.create(
        NewTopic("given", 2, 1, configs=[("retention.ms", "1000")]),
        NewTopic("defaulted"),
        NewTopic("manual", assignments=[(1, [0]), (0, [0])]),
    )
    assert [(each.value.partitions, each.value.replication_factor) for each in (given, defaulted, manual)] == [
        (2, 1),
        (3, 1),
        (2, 1),
    ]
    topic = fleet.image.topics["given"]
    assert topic.id == given.value.id and fleet.image.topics_by_id[topic.id] is topic
    assert [state.index for state in topic.partitions] == [0, 1]
    state = topic.partitions[0]
    assert (state.replicas, state.isr, state.leader, state.leader_epoch) == ((0,), (0,), 0, 0)
    assert state.directories == (uuid.UUID(int=1000),)
    assert fleet.image.config(TOPIC, "given") == {"retention.ms": "1000"}
    assert fleet.image.partition_count == 7


def test_validate_only_changes_nothing() -> None:
    fleet = Fleet()
    before = fleet.image
    assert fleet.create(NewTopic("a", 4, 1), validate_only=True)[0].value.partitions == 4
    assert fleet.image is before


def test_a_name_twice_in_a_request() -> None:
    outcomes = Fleet().create(NewTopic("a", 1, 1), NewTopic("a", 2, 1), NewTopic("b", 1, 1))
    assert [(each.value.name, each.code, each.message) for each in outcomes] == [
        ("a", Code.invalid_request, "Duplicate topic name."),
        ("b", Code.none, None),
    ]


def test_too_many_partitions() -> None:
    limits = ask.Limits(partitions_per_request_max=10, partitions_in_fleet_max=15)
    fleet = Fleet(limits=limits)
    assert refusal(fleet, ask.CreateTopics([NewTopic("a", 6, 1), NewTopic("b", 5, 1)])).code is Code.policy_violation
    fleet.create(NewTopic("a", 10, 1))
    refused = refusal(fleet, ask.CreateTopics([NewTopic("b", 6, 1)]))
    assert refused.code is Code.policy_violation and "limit of 15" in str(refused)
    assert refusal(fleet, ask.CreatePartitions([NewPartitions("a", 16)])).code is Code.policy_violation


def test_no_active_broker() -> None:
    fleet = Fleet()
    fleet.ask(ask.FenceBroker(0, fleet.image.brokers[0].epoch))
    outcome = fleet.create(NewTopic("a", 1, 1))[0]
    assert outcome.code is Code.invalid_replication_factor and outcome.message.endswith(
        "All brokers are currently fenced."
    )
    manual = fleet.create(NewTopic("a", assignments=[(0, [0])]))[0]
    assert manual.code is Code.invalid_replica_assignment and "fenced or in controlled shutdown" in manual.message


# -- delete topics, create partitions


def test_delete_by_name_and_by_id() -> None:
    fleet = Fleet()
    fleet.create(NewTopic("a", 2, 1, configs=[("retention.ms", "1")]), NewTopic("b", 1, 1), NewTopic("c", 1, 1))
    by_id = fleet.image.topics["b"].id
    unknown = uuid.UUID(int=99)
    outcomes = fleet.ask(
        ask.DeleteTopics(
            [
                TopicRef("a"),
                TopicRef(id=by_id),
                TopicRef("b"),
                TopicRef("missing"),
                TopicRef(id=unknown),
                TopicRef(),
                TopicRef("c", by_id),
            ]
        )
    )
    assert [each.code for each in outcomes] == [
        Code.none,
        Code.none,
        Code.invalid_request,
        Code.unknown_topic_or_partition,
        Code.unknown_topic_id,
        Code.invalid_request,
        Code.invalid_request,
    ]
    assert outcomes[1].value == TopicRef("b", by_id)
    assert set(fleet.image.topics) == {"c"} and len(fleet.image.topics_by_id) == 1
    assert fleet.image.partition_count == 1
    assert not fleet.image.config(TOPIC, "a")


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (NewPartitions("missing", 3), Code.unknown_topic_or_partition, None),
        (NewPartitions("a", 2), Code.invalid_partitions, "Topic already has 2 partition(s)."),
        (
            NewPartitions("a", 1),
            Code.invalid_partitions,
            "The topic a currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            NewPartitions("a", 4, [[0]]),
            Code.invalid_replica_assignment,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (NewPartitions("a", 3, [[5]]), Code.invalid_replica_assignment, "includes broker 5"),
        (NewPartitions("a", 3, [[0, 1]]), Code.invalid_replica_assignment, "which have 1 replica(s)"),
    ],
)
def test_refused_growth(wanted: NewPartitions, code: Code, message: str | None) -> None:
    fleet = Fleet(brokers=2)
    fleet.create(NewTopic("a", 2, 1))
    outcome = fleet.ask(ask.CreatePartitions([wanted]))[0]
    assert outcome.code is code
    assert message is None or message in outcome.message
    assert len(fleet.image.topics["a"].partitions) == 2


def test_growth() -> None:
    fleet = Fleet(brokers=2)
    fleet.create(NewTopic("a", 1, 2), NewTopic("b", 1, 1))
    fleet.ask(ask.CreatePartitions([NewPartitions("a", 3), NewPartitions("b", 2, [[1]])]))
    a, b = fleet.image.topics["a"], fleet.image.topics["b"]
    assert [state.index for state in a.partitions] == [0, 1, 2]
    assert all(sorted(state.replicas) == [0, 1] for state in a.partitions)
    assert b.partitions[1].replicas == (1,)


# -- settings


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


# -- features


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


# -- brokers


def test_registration() -> None:
    fleet = Fleet(brokers=0, live_brokers={0})
    epoch = fleet.join(0, rack="a", grpc_port=9190)
    broker = fleet.image.brokers[0]
    assert epoch == broker.epoch == 2 and broker.is_active
    assert (broker.rack, broker.grpc_port, broker.listeners[0].port) == ("a", 9190, 9092)
    again = ask.RegisterBroker(0, broker.incarnation, CLUSTER, [], features=SUPPORTED_FEATURES)
    assert fleet.ask(again) == epoch, "the same incarnation keeps its epoch"
    other = ask.RegisterBroker(0, uuid.UUID(int=5), CLUSTER, [], features=SUPPORTED_FEATURES)
    assert refusal(fleet, other).code is Code.duplicate_broker_registration
    fleet.settings["live_brokers"] = set()
    assert fleet.ask(other) == fleet.image.version > epoch


def test_refused_registration() -> None:
    fleet = Fleet(brokers=0)
    foreign = ask.RegisterBroker(0, uuid.UUID(int=5), "other", [], features=SUPPORTED_FEATURES)
    assert refusal(fleet, foreign).code is Code.inconsistent_cluster_id
    old = ask.RegisterBroker(0, uuid.UUID(int=5), CLUSTER, [], features={"metadata.version": (7, 20)})
    assert refusal(fleet, old).code is Code.unsupported_version


def test_a_sole_broker_that_died_leads_again_with_a_new_epoch() -> None:
    fleet = Fleet()
    fleet.create(NewTopic("a", 2, 1))
    fleet.join(0)
    states = fleet.image.topics["a"].partitions
    assert [(state.leader, state.leader_epoch, state.isr) for state in states] == [(0, 2, (0,))] * 2


def test_leaders_move_when_a_broker_is_fenced() -> None:
    fleet = Fleet(brokers=3)
    fleet.create(NewTopic("a", assignments=[(0, [0, 1, 2]), (1, [1, 2, 0])]), NewTopic("b", assignments=[(0, [0])]))
    fleet.ask(ask.FenceBroker(0, fleet.image.brokers[0].epoch))
    (first, second), (alone,) = (fleet.image.topics[name].partitions for name in "ab")
    assert (first.leader, first.leader_epoch, first.isr) == (1, 1, (1, 2))
    assert (second.leader, second.leader_epoch, second.isr) == (1, 0, (1, 2))
    assert (alone.leader, alone.leader_epoch, alone.isr, alone.elr) == (NO_LEADER, 1, (), (0,))
    fleet.ask(ask.UnfenceBroker(0, fleet.image.brokers[0].epoch))
    (first, _), (alone,) = (fleet.image.topics[name].partitions for name in "ab")
    assert (first.leader, alone.leader, alone.leader_epoch) == (1, 0, 2)


def test_stale_broker_epochs_and_producer_ids() -> None:
    fleet = Fleet()
    epoch = fleet.image.brokers[0].epoch
    blocks = [fleet.ask(ask.AllocateProducerIds(0, epoch)) for _ in range(3)]
    assert [(block.first, block.size) for block in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]
    for command in (ask.AllocateProducerIds(0, epoch + 1), ask.FenceBroker(0, 99), ask.UnfenceBroker(8, 1)):
        assert refusal(fleet, command).code is Code.stale_broker_epoch
    assert refusal(fleet, ask.UnregisterBroker(7)).code is Code.broker_id_not_registered
    fleet.ask(ask.UnregisterBroker(0))
    assert not fleet.image.brokers


# -- in-sync replicas


def isr_change(fleet: Fleet, isr: list[tuple[int, int]], *, index: int = 0, **epochs: int) -> ask.IsrChange:
    return ask.IsrChange(
        fleet.image.topics["a"].id, index, epochs.get("leader_epoch", 0), epochs.get("partition_epoch", 0), isr
    )


@pytest.mark.parametrize(
    ("isr", "options", "broker", "code"),
    [
        ([(0, -1), (1, -1)], {}, 0, Code.none),
        ([(0, -1)], {"leader_epoch": 1}, 0, Code.not_controller),
        ([(0, -1)], {"partition_epoch": 1}, 0, Code.not_controller),
        ([(0, -1)], {"leader_epoch": -1}, 0, Code.fenced_leader_epoch),
        ([(0, -1)], {"partition_epoch": -1}, 0, Code.invalid_update_version),
        ([(0, -1)], {"index": 5}, 0, Code.unknown_topic_or_partition),
        ([(1, -1)], {}, 1, Code.invalid_request),
        ([(1, -1)], {}, 0, Code.invalid_request),
        ([(0, -1), (0, -1)], {}, 0, Code.invalid_request),
        ([(0, -1), (7, -1)], {}, 0, Code.invalid_request),
        ([(0, -1), (1, 12345)], {}, 0, Code.ineligible_replica),
        ([(0, -1), (2, -1)], {}, 0, Code.ineligible_replica),
    ],
)
def test_alter_partition(isr: list[tuple[int, int]], options: dict[str, int], broker: int, code: Code) -> None:
    fleet = Fleet(brokers=3)
    fleet.create(NewTopic("a", assignments=[(0, [0, 1, 2])]))
    fleet.image, _ = fleet.image.apply([_fenced(fleet, 2)], version=fleet.image.version + 1, epoch=1)
    command = ask.AlterPartition(broker, fleet.image.brokers[broker].epoch, [isr_change(fleet, isr, **options)])
    outcome = fleet.ask(command)[0]
    state = fleet.image.topics["a"].partitions[0]
    assert outcome.code is code
    if code is Code.none:
        assert outcome.value == state and (state.isr, state.partition_epoch, state.leader_epoch) == ((0, 1), 1, 0)
    else:
        assert (outcome.value, state.isr, state.partition_epoch) == (None, (0, 1, 2), 0)


def _fenced(fleet: Fleet, broker: int) -> Any:
    from ottla.metadata.records import broker_change_record

    return broker_change_record(broker_id=broker, epoch=fleet.image.brokers[broker].epoch, fenced=True)
