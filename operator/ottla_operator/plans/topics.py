"""What to create, change and delete in Kafka for the KafkaTopics of a cluster, and their conditions. Pure.

A topic belongs to the KafkaTopic that made it or adopted it. That is written down in an annotation before the topic is
made, so that an operator that ends in between, or an object that is restored from a backup, finds its own. Objects of
former versions, which have no annotation, have the topic's id in their status.
"""

from collections.abc import Iterable, Mapping

import msgspec

from ottla_operator.plans.conditions import Finding
from ottla_operator.resources.kafka_topic import KafkaTopic
from ottla_operator.resources.labels import OWNS_TOPIC

__all__ = [
    "FINALIZER", "FoundTopic", "TopicChange", "TopicOutcome", "TopicPlan", "finding", "needs_finalizer",
    "ownership_mark", "plan_topics", "without",
]  # fmt: skip

FINALIZER = "ottla.dev/topic"
# The brokers' own. Others whose names begin with __ are somebody's, such as heartbeats of Debezium.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
# Set by whoever moves partitions, for as long as that takes.
TEMPORARY = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})


class FoundTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic that the brokers have. `replicas`: of the partition with most; `offline`: partitions without leader."""

    name: str
    id: str
    partitions: int
    replicas: int
    offline: int
    configs: dict[str, str]


class TopicChange(msgspec.Struct, frozen=True, kw_only=True):
    """To make a topic or to change one; 0 leaves a number alone, an empty value a setting to its default."""

    name: str
    partitions: int = 0
    replicas: int = 0
    configs: dict[str, str] = {}


class TopicOutcome(msgspec.Struct, frozen=True):
    """Kafka's error code, 0 for success, and a sentence."""

    code: int
    message: str = ""


class TopicPlan(msgspec.Struct, frozen=True, kw_only=True):
    """`owners`: names of the objects that a topic belongs to, or will, once it is made or adopted. `refusals`: object's
    name → why it gets no topic."""

    owners: frozenset[str] = frozenset()
    create: tuple[TopicChange, ...] = ()
    alter: tuple[TopicChange, ...] = ()
    delete: tuple[str, ...] = ()
    refusals: dict[str, Finding] = {}


def ownership_mark(topic: KafkaTopic, fleet_id: str) -> str:
    """The annotation of the object that the topic belongs to. A copy of the object for another topic has another."""
    return f"{fleet_id}/{topic.topic_name}"


def plan_topics(topics: Iterable[KafkaTopic], found: Mapping[str, FoundTopic], *, fleet_id: str) -> TopicPlan:
    """`topics`: all of one cluster; `found`: what the brokers have, by name."""
    create, alter, delete = [], [], []
    first: dict[str, KafkaTopic] = {}
    owners: set[str] = set()
    refusals: dict[str, Finding] = {}
    for topic in sorted(topics, key=_age):
        there = found.get(topic.topic_name)
        refused = _internal(topic) or _rivalry(topic, first.setdefault(topic.topic_name, topic))
        if refused := refused or _strange(topic, there, fleet_id):
            refusals[topic.metadata.name] = refused
            continue
        owners.add(topic.metadata.name)
        if topic.metadata.deletion_timestamp:
            if there and topic.spec.reclaim_policy == "Delete" and FINALIZER in topic.metadata.finalizers:
                delete.append(there.name)
        elif there is None:
            create.append(_creation(topic))
        elif change := _difference(topic, there):
            alter.append(change)
    return TopicPlan(
        owners=frozenset(owners),
        create=tuple(create),
        alter=tuple(alter),
        delete=tuple(delete),
        refusals=refusals,
    )


def without(plan: TopicPlan, topics: Iterable[KafkaTopic], refusals: Mapping[str, Finding]) -> TopicPlan:
    """The plan less what it would do for the objects that are refused besides."""
    names = {topic.topic_name for topic in topics if topic.metadata.name in refusals}
    return TopicPlan(
        owners=plan.owners.difference(refusals),
        create=tuple(change for change in plan.create if change.name not in names),
        alter=tuple(change for change in plan.alter if change.name not in names),
        delete=plan.delete,
        refusals={**plan.refusals, **refusals},
    )


def _internal(topic: KafkaTopic) -> Finding | None:
    if topic.topic_name not in INTERNAL_TOPICS:
        return None
    text = f"topic {topic.topic_name} is the brokers' own, which nobody else may change; delete this object"
    return Finding("Ready", False, "InternalTopic", text)


def _rivalry(topic: KafkaTopic, first: KafkaTopic) -> Finding | None:
    if first is topic:
        return None
    text = f"KafkaTopic {first.metadata.name} describes topic {topic.topic_name} already; delete one of the two"
    return Finding("Ready", False, "DescribedTwice", text)


def _strange(topic: KafkaTopic, there: FoundTopic | None, fleet_id: str) -> Finding | None:
    """A topic that was there before is only taken over when the object says so. None is deleted that was not."""
    if there is None or _is_own(topic, there, fleet_id):
        return None
    if topic.spec.adopt and topic.metadata.deletion_timestamp is None:
        return None
    text = (
        f"topic {topic.topic_name} exists already and is not of this KafkaTopic, so nothing of it is changed; set "
        "spec.adopt: true to take it over with the settings of this object, or choose another topicName"
    )
    return Finding("Ready", False, "NotAdopted", text)


def _is_own(topic: KafkaTopic, there: FoundTopic, fleet_id: str) -> bool:
    by_status = topic.status is not None and topic.status.topic_id == there.id
    return by_status or topic.metadata.annotations.get(OWNS_TOPIC) == ownership_mark(topic, fleet_id)


def _age(topic: KafkaTopic) -> tuple[bool, str, str]:
    """Objects that are being deleted come last: they must not block a new one of the same topic."""
    return (topic.metadata.deletion_timestamp is not None, topic.metadata.creation_timestamp, topic.metadata.name)


def _creation(topic: KafkaTopic) -> TopicChange:
    return TopicChange(
        name=topic.topic_name,
        partitions=topic.spec.partitions,
        replicas=topic.spec.replicas or 0,
        configs=_configs(topic),
    )


def _difference(topic: KafkaTopic, there: FoundTopic) -> TopicChange | None:
    """Settings that are set in Kafka and not here go back to their defaults: the object is the truth. Not those that
    others set for a time."""
    wanted = _configs(topic)
    gone = {name: "" for name in there.configs if name not in wanted}
    changed = {name: value for name, value in wanted.items() if there.configs.get(name) != value}
    gone, changed = ({name: each[name] for name in each if name not in TEMPORARY} for each in (gone, changed))
    partitions = topic.spec.partitions if topic.spec.partitions > there.partitions else 0
    if not (partitions or changed or gone):
        return None
    return TopicChange(name=there.name, partitions=partitions, configs={**gone, **changed})


def _configs(topic: KafkaTopic) -> dict[str, str]:
    return {name: str(value) for name, value in topic.spec.config.items()}


def needs_finalizer(topic: KafkaTopic, *, done: bool) -> bool:
    """Whether the object should have it. `done`: the topic is gone, or there is no fleet to delete it from."""
    if topic.metadata.deletion_timestamp is not None:  # none can be added any more
        return FINALIZER in topic.metadata.finalizers and topic.spec.reclaim_policy == "Delete" and not done
    return topic.spec.reclaim_policy == "Delete"


def finding(
    topic: KafkaTopic, there: FoundTopic | None, outcome: TopicOutcome | None, refusals: Mapping[str, Finding]
) -> Finding:
    """`outcome`: of what was asked of the brokers, None when nothing was. `refusals`: by object."""
    if refused := refusals.get(topic.metadata.name):
        return refused
    if topic.metadata.deletion_timestamp is not None:
        why = f"the brokers refused to delete the topic: {outcome.message}" if outcome else "the topic is being deleted"
        return Finding("Ready", False, "Deleting", f"{why}; reclaimPolicy Retain keeps it and lets this object go")
    if outcome is not None and outcome.code:
        return Finding("Ready", False, "Refused", f"the brokers refused it: {outcome.message}")
    if there is None:
        return Finding("Ready", False, "Creating", "the topic is being made")
    if there.partitions > topic.spec.partitions:
        text = f"the topic has {there.partitions} partitions, which cannot become fewer; set partitions to that"
        return Finding("Ready", False, "TooManyPartitions", text)
    if topic.spec.replicas and there.replicas != topic.spec.replicas:
        text = (
            f"the topic has {there.replicas} replicas and this version does not change that; "
            f"set replicas to {there.replicas}, or reassign its partitions"
        )
        return Finding("Ready", False, "OtherReplicas", text)
    if there.offline:
        text = f"{there.offline} of {there.partitions} partitions have no leader"
        return Finding("Ready", False, "PartitionsOffline", text)
    return Finding("Ready", True, "UpToDate", "the topic is as the spec asks for")
