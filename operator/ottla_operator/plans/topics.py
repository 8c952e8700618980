"""What to create, change and delete in Kafka for the KafkaTopics of a cluster, and their conditions. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from ottla_operator.plans.conditions import Finding
from ottla_operator.resources.kafka_topic import KafkaTopic

__all__ = [
    "FINALIZER", "FoundTopic", "TopicChange", "TopicOutcome", "TopicPlan", "finding", "needs_finalizer", "plan_topics",
]  # fmt: skip

FINALIZER = "ottla.dev/topic"


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
    create: tuple[TopicChange, ...] = ()
    alter: tuple[TopicChange, ...] = ()
    delete: tuple[str, ...] = ()
    # Object's name → the one that describes the same topic and came first.
    rivals: dict[str, str] = {}


def plan_topics(topics: Iterable[KafkaTopic], found: Mapping[str, FoundTopic]) -> TopicPlan:
    """`topics`: all of one cluster; `found`: what the brokers have, by name."""
    create, alter, delete = [], [], []
    owners: dict[str, KafkaTopic] = {}
    rivals: dict[str, str] = {}
    for topic in sorted(topics, key=_age):
        owner = owners.setdefault(topic.topic_name, topic)
        if owner is not topic:
            rivals[topic.metadata.name] = owner.metadata.name
            continue
        there = found.get(topic.topic_name)
        if topic.metadata.deletion_timestamp:
            if there and topic.spec.reclaim_policy == "Delete" and FINALIZER in topic.metadata.finalizers:
                delete.append(there.name)
        elif there is None:
            create.append(_creation(topic))
        elif change := _difference(topic, there):
            alter.append(change)
    return TopicPlan(create=tuple(create), alter=tuple(alter), delete=tuple(delete), rivals=rivals)


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
    """Settings that are set in Kafka and not here go back to their defaults: the object is the truth."""
    wanted = _configs(topic)
    gone = {name: "" for name in there.configs if name not in wanted}
    changed = {name: value for name, value in wanted.items() if there.configs.get(name) != value}
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
    topic: KafkaTopic, there: FoundTopic | None, outcome: TopicOutcome | None, rivals: Mapping[str, str]
) -> Finding:
    """`outcome`: of what was asked of the brokers, None when nothing was."""
    if rival := rivals.get(topic.metadata.name):
        text = f"KafkaTopic {rival} describes topic {topic.topic_name} already; delete one of the two"
        return Finding("Ready", False, "DescribedTwice", text)
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
