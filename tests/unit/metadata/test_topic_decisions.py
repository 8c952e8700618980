"""The controller's decisions on topics as tables: command in, codes, messages and records out."""

import uuid

import pytest
from ottla.errors import Code
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import NewPartitions, NewTopic, TopicRef
from ottla.metadata.model.state import ResourceType
from support.decisions import Fleet, refusal

TOPIC = ResourceType.TOPIC


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


def test_nothing_is_deleted_where_deletion_is_disabled() -> None:
    fleet = Fleet(topics_may_be_deleted=False)
    fleet.create(NewTopic("a", 1, 1))
    assert refusal(fleet, ask.DeleteTopics([TopicRef("a")])).code is Code.topic_deletion_disabled
    assert "a" in fleet.image.topics


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


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
def test_internal_topics_do_not_grow(topic: str) -> None:
    """All that coordinators keep would be searched elsewhere: committed offsets read as -1, without an error."""
    fleet = Fleet(brokers=2)
    fleet.create(NewTopic(topic, 2, 1))
    outcome = fleet.ask(ask.CreatePartitions([NewPartitions(topic, 3)]))[0]
    assert outcome.code is Code.invalid_request
    assert len(fleet.image.topics[topic].partitions) == 2


def test_growth() -> None:
    fleet = Fleet(brokers=2)
    fleet.create(NewTopic("a", 1, 2), NewTopic("b", 1, 1))
    fleet.ask(ask.CreatePartitions([NewPartitions("a", 3), NewPartitions("b", 2, [[1]])]))
    a, b = fleet.image.topics["a"], fleet.image.topics["b"]
    assert [state.index for state in a.partitions] == [0, 1, 2]
    assert all(sorted(state.replicas) == [0, 1] for state in a.partitions)
    assert b.partitions[1].replicas == (1,)
