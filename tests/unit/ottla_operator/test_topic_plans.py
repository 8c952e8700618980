"""Topics: what is asked of the brokers, when the object has a finalizer, what its status says."""

import pytest
from ottla_operator.plans.topics import (
    FINALIZER,
    FoundTopic,
    TopicChange,
    TopicOutcome,
    finding,
    needs_finalizer,
    plan_topics,
)
from support.operator_samples import topic

DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}


def _found(name: str = "clicks", **more) -> FoundTopic:
    facts = {"name": name, "id": "0" * 32, "partitions": 1, "replicas": 3, "offline": 0, "configs": {}}
    return FoundTopic(**(facts | more))


def _plan(*topics, found=()):
    return plan_topics(topics, {one.name: one for one in found})


def test_many_that_are_missing_are_one_request():
    plan = _plan(*(topic(f"t{number}", partitions=2) for number in range(500)))
    assert len(plan.create) == 500 and not plan.alter and not plan.delete


def test_a_topic_that_is_right_is_left_alone():
    right = topic(config={"retention.ms": 1000}, replicas=3)
    assert _plan(right, found=[_found(configs={"retention.ms": "1000"})]) == _plan()


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
    ],
)
def test_differences(wanted, there, change):
    assert _plan(topic(**wanted), found=[_found(**there)]).alter == ((change,) if change else ())


def test_deletion_follows_the_reclaim_policy():
    assert _plan(topic(metadata=DELETED, reclaimPolicy="Delete"), found=[_found()]).delete == ("clicks",)
    assert _plan(topic(metadata=DELETED, reclaimPolicy="Retain"), found=[_found()]).delete == ()
    assert _plan(topic(metadata=DELETED, reclaimPolicy="Delete")).delete == ()


def test_one_that_goes_makes_way_for_one_that_comes():
    old = topic("old", topicName="clicks", metadata=DELETED, reclaimPolicy="Delete")
    plan = _plan(old, topic("clicks"), found=[_found()])
    assert plan.delete == () and plan.rivals == {"old": "clicks"}


def test_the_older_of_two_owns_the_topic():
    young = topic("young", topicName="clicks", partitions=9, metadata={"creationTimestamp": "2026-01-02T00:00:00Z"})
    old = topic("old", topicName="clicks", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    plan = _plan(young, old, found=[_found()])
    assert plan.alter == () and plan.rivals == {"young": "old"}
    assert finding(young, _found(), None, plan.rivals).reason == "DescribedTwice"


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
