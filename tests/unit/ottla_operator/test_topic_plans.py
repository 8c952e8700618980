"""Topics: what is asked of the brokers, when the object has a finalizer, what its status says."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla_operator.plans.conditions import Finding
from ottla_operator.plans.topics import (
    FINALIZER,
    FoundTopic,
    TopicChange,
    TopicOutcome,
    finding,
    needs_finalizer,
    plan_topics,
    without,
)
from ottla_operator.resources.kafka_topic import KafkaTopicStatus
from ottla_operator.resources.labels import OWNS_TOPIC
from support.operator_samples import topic

FLEET = "fleet-id"
OWN = {"annotations": {OWNS_TOPIC: f"{FLEET}/clicks"}}
DELETED = {**OWN, "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}

THROTTLED = {"leader.replication.throttled.replicas": "0:1", "follower.replication.throttled.replicas": "0:2"}


def _found(name: str = "clicks", **more) -> FoundTopic:
    facts = {"name": name, "id": "0" * 32, "partitions": 1, "replicas": 3, "offline": 0, "configs": {}}
    return FoundTopic(**(facts | more))


def _plan(*topics, found=()):
    return plan_topics(topics, {one.name: one for one in found}, fleet_id=FLEET)


def test_many_that_are_missing_are_one_request():
    plan = _plan(*(topic(f"t{number}", partitions=2) for number in range(500)))
    assert len(plan.create) == 500 and not plan.alter and not plan.delete


def test_a_topic_that_is_right_is_left_alone():
    right = topic(config={"retention.ms": 1000}, replicas=3, metadata=OWN)
    plan = _plan(right, found=[_found(configs={"retention.ms": "1000"})])
    assert (plan.create, plan.alter, plan.delete) == ((), (), ()) and plan.owners == {"clicks"}


@pytest.mark.parametrize(
    ("wanted", "there", "change"),
    [
        ({"partitions": 4}, {}, TopicChange(name="clicks", partitions=4)),
        ({"config": {"a": 1}}, {}, TopicChange(name="clicks", configs={"a": "1"})),
        (
            {"config": {"a": "1"}},
            {"configs": {"a": "2", "b": "3"}},
            TopicChange(name="clicks", configs={"b": "", "a": "1"}),
        ),
        ({"partitions": 1}, {"partitions": 4}, None),
        ({}, {"configs": THROTTLED}, None),
        (
            {"config": {"a": "1"}},
            {"configs": {**THROTTLED, "a": "1", "b": "2"}},
            TopicChange(name="clicks", configs={"b": ""}),
        ),
    ],
)
def test_differences(wanted, there, change):
    assert _plan(topic(**wanted, metadata=OWN), found=[_found(**there)]).alter == ((change,) if change else ())


def test_deletion_follows_the_reclaim_policy():
    assert _plan(topic(metadata=DELETED, reclaimPolicy="Delete"), found=[_found()]).delete == ("clicks",)
    assert _plan(topic(metadata=DELETED, reclaimPolicy="Retain"), found=[_found()]).delete == ()
    assert _plan(topic(metadata=DELETED, reclaimPolicy="Delete")).delete == ()


def test_one_that_goes_makes_way_for_one_that_comes():
    old = topic("old", topicName="clicks", metadata=DELETED, reclaimPolicy="Delete")
    plan = _plan(old, topic("clicks", metadata=OWN), found=[_found()])
    assert plan.delete == () and "KafkaTopic clicks" in plan.refusals["old"].message


def test_the_older_of_two_owns_the_topic():
    young = topic(
        "young", topicName="clicks", partitions=9, metadata={**OWN, "creationTimestamp": "2026-01-02T00:00:00Z"}
    )
    old = topic("old", topicName="clicks", metadata={**OWN, "creationTimestamp": "2026-01-01T00:00:00Z"})
    plan = _plan(young, old, found=[_found()])
    assert plan.alter == () and plan.owners == {"old"}
    assert finding(young, _found(), None, plan.refusals).reason == "DescribedTwice"


@pytest.mark.parametrize(
    ("policy", "metadata", "done", "expected"),
    [
        ("Retain", {}, False, False),
        ("Delete", {}, False, True),
        ("Retain", {"finalizers": [FINALIZER, "other"]}, False, False),
        ("Delete", DELETED, False, True),
        ("Delete", DELETED, True, False),
        ("Retain", DELETED, False, False),
        ("Delete", {"deletionTimestamp": "2026-01-01T00:00:00Z"}, False, False),
    ],
)
def test_finalizers(policy, metadata, done, expected):
    assert needs_finalizer(topic(metadata=metadata, reclaimPolicy=policy), done=done) == expected


@pytest.mark.parametrize(
    ("there", "outcome", "spec", "reason"),
    [
        (_found(), None, {}, "UpToDate"),
        (None, TopicOutcome(0), {}, "Creating"),
        (None, TopicOutcome(38, "Replication factor is larger than brokers."), {}, "Refused"),
        (_found(partitions=4), None, {}, "TooManyPartitions"),
        (_found(), None, {"replicas": 2}, "OtherReplicas"),
        (_found(offline=1), None, {}, "PartitionsOffline"),
    ],
)
def test_findings(there, outcome, spec, reason):
    found = finding(topic(**spec), there, outcome, {})
    assert found.reason == reason and found.holds == (reason == "UpToDate")


def test_a_topic_that_cannot_be_deleted_says_how_to_let_go():
    leaving = topic(metadata=DELETED, reclaimPolicy="Delete")
    found = finding(leaving, _found(), TopicOutcome(73, "Topic deletion is disabled."), {})
    assert found.reason == "Deleting" and "disabled" in found.message and "Retain" in found.message


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
@pytest.mark.parametrize("more", [{}, {"adopt": True}, {"reclaimPolicy": "Delete", "metadata": DELETED}])
def test_topics_of_the_brokers_are_refused(name, more):
    one = topic("offsets", topicName=name, **more)
    for found in ([], [_found(name, configs={"cleanup.policy": "compact"})]):
        plan = _plan(one, found=found)
        assert (plan.create, plan.alter, plan.delete, plan.owners) == ((), (), (), frozenset())
        assert plan.refusals["offsets"].reason == "InternalTopic"


STRANGER = _found(configs={"retention.ms": "1"})


def test_a_topic_that_was_there_before_is_taken_only_when_asked():
    plan = _plan(topic(), found=[STRANGER])
    assert plan.alter == () and plan.refusals["clicks"].reason == "NotAdopted"
    assert "spec.adopt: true" in plan.refusals["clicks"].message
    adopting = _plan(topic(adopt=True), found=[STRANGER])
    assert adopting.alter and adopting.owners == {"clicks"} and not adopting.refusals


def test_its_own_is_found_again():
    """By the annotation, which is there before the topic is; by the status, as former versions wrote it."""
    assert _plan(topic(metadata=OWN), found=[STRANGER]).alter
    of_former_version = msgspec.structs.replace(topic(), status=KafkaTopicStatus(topic_id=STRANGER.id))
    assert _plan(of_former_version, found=[STRANGER]).alter
    of_another_fleet = {"annotations": {OWNS_TOPIC: "other/clicks"}}
    of_another_topic = {"annotations": {OWNS_TOPIC: f"{FLEET}/other"}}
    for metadata in (of_another_fleet, of_another_topic):
        assert _plan(topic(metadata=metadata), found=[STRANGER]).refusals["clicks"].reason == "NotAdopted"


def test_a_topic_that_was_not_taken_is_not_deleted_with_the_object():
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}
    for adopt in (False, True):
        plan = _plan(topic(metadata=going, reclaimPolicy="Delete", adopt=adopt), found=[STRANGER])
        assert plan.delete == () and plan.owners == frozenset()


def test_an_object_that_cannot_be_marked_stops_no_other():
    bad, good = topic("bad"), topic("good")
    refused = Finding("Ready", False, "AdmissionDenied", "no")
    plan = without(_plan(bad, good), [bad, good], {"bad": refused})
    assert [change.name for change in plan.create] == ["good"] and plan.owners == {"good"}
    assert plan.refusals == {"bad": refused}


ANNOTATIONS = st.sampled_from([{}, {OWNS_TOPIC: f"{FLEET}/clicks"}, {OWNS_TOPIC: "other/clicks"}])
OBJECTS = st.builds(
    lambda name, target, adopt, marked, deleted: topic(
        name,
        topicName=target,
        adopt=adopt,
        reclaimPolicy="Delete",
        metadata={
            "annotations": marked,
            **({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]} if deleted else {}),
        },
    ),
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["clicks", "views", "__consumer_offsets"]),
    st.booleans(),
    ANNOTATIONS,
    st.booleans(),
)


@given(
    st.lists(OBJECTS, max_size=3, unique_by=lambda one: one.metadata.name),
    st.sets(st.sampled_from(["clicks", "views"])),
)
def test_no_plan_touches_a_topic_that_nobody_owns_or_adopts(objects, existing):
    found = [_found(name, configs={"a": "1"}) for name in ("__consumer_offsets", *existing)]
    plan = _plan(*objects, found=found)
    marked = {
        one.topic_name for one in objects if one.metadata.annotations.get(OWNS_TOPIC) == f"{FLEET}/{one.topic_name}"
    }
    adopting = {one.topic_name for one in objects if one.spec.adopt and not one.metadata.deletion_timestamp}
    assert {change.name for change in plan.alter} <= (marked | adopting) - {"__consumer_offsets"}
    assert set(plan.delete) <= marked - {"__consumer_offsets"}
    assert not {change.name for change in plan.create} & existing
