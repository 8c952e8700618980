"""Decisions about topics: create, delete, grow. Pure. Checks, codes and their order are Kafka's."""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.assignments import (
    Assignment,
    bad_assignment,
    checked_assignment,
    manual_assignments,
    new_partition_records,
    placed,
)
from ottla.metadata.decisions.commands import (
    Context,
    CreatedTopic,
    CreatePartitions,
    CreateTopics,
    Decision,
    DeleteTopics,
    NewPartitions,
    NewTopic,
    Outcome,
    TopicRef,
)
from ottla.metadata.decisions.configs import check_settings
from ottla.metadata.decisions.reassignments import lasting_replicas
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import (
    Record,
    config_record,
    remove_topic_record,
    topic_record,
)
from ottla.metadata.model.state import ResourceType, Topic
from ottla.metadata.model.topic_names import INTERNAL_TOPICS, check_topic_name, collision_index, collision_key

__all__ = ["check_new_name", "check_once", "check_ref", "create", "delete", "grow"]

# The one name that Kafka reserves for its metadata log.
CLUSTER_METADATA_TOPIC = "__cluster_metadata"


# -- what a request names; a handler asks the same before it takes any name out of the request


def check_once(name: str, occurrences: Mapping[str, int]) -> None:
    if occurrences[name] > 1:
        raise KafkaError(Code.invalid_request, "Duplicate topic name.")


def check_new_name(name: str, occurrences: Mapping[str, int]) -> None:
    check_once(name, occurrences)
    if name == CLUSTER_METADATA_TOPIC:
        raise KafkaError(Code.invalid_request, f"Creation of internal topic {name} is prohibited.")


def check_ref(ref: TopicRef, occurrences: Mapping[TopicRef, int]) -> None:
    has_id = ref.id.int != 0
    if (ref.name is not None) == has_id:
        wrong = (
            "You may not specify both topic name and topic id."
            if has_id
            else "Neither topic name nor id were specified."
        )
        raise KafkaError(Code.invalid_request, wrong)
    if occurrences[ref] > 1:
        raise KafkaError(Code.invalid_request, f"Duplicate topic {'id' if has_id else 'name'}.")


# -- create


def create(image: Image, command: CreateTopics, context: Context) -> Decision[list[Outcome[CreatedTopic]]]:
    _check_request_size((_partitions_asked(topic, context) for topic in command.topics), image, context)
    occurrences = Counter(topic.name for topic in command.topics)
    collisions = _collisions(image, command.topics)
    records: list[Record] = []
    outcomes: dict[str, Outcome[CreatedTopic]] = {}
    for topic in command.topics:
        try:
            _check_name(image, topic, occurrences, collisions)
            created, new_records = _create_one(image, topic, context)
        except KafkaError as error:
            outcomes[topic.name] = Outcome(CreatedTopic(topic.name), error.code, error.message)
        else:
            outcomes[topic.name] = Outcome(created)
            records += new_records
    return Decision(list(outcomes.values()), () if command.validate_only else records)


def _partitions_asked(topic: NewTopic, context: Context) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return context.default_partitions if topic.partitions == -1 else max(topic.partitions, 0)


def _check_request_size(counts: Iterable[int], image: Image, context: Context) -> None:
    wanted, limits = sum(counts), context.limits
    if wanted > limits.partitions_per_request_max:
        raise KafkaError(Code.policy_violation, "Excessively large number of partitions per request.")
    if image.partition_count + wanted > limits.partitions_in_fleet_max:
        raise KafkaError(
            Code.policy_violation,
            f"{wanted} more partition(s) would exceed this fleet's limit of {limits.partitions_in_fleet_max}; "
            f"it has {image.partition_count}.",
        )


def _collisions(image: Image, topics: Sequence[NewTopic]) -> Mapping[str, str]:
    """Built only if a name could collide, because it reads every topic's name."""
    return collision_index(image.topics) if any(collision_key(topic.name) for topic in topics) else {}


def _check_name(image: Image, topic: NewTopic, occurrences: Mapping[str, int], collisions: Mapping[str, str]) -> None:
    name = topic.name
    check_new_name(name, occurrences)
    if name in image.topics:
        raise KafkaError(Code.topic_already_exists, f"Topic '{name}' already exists.")
    check_topic_name(name)
    if (key := collision_key(name)) and key in collisions:
        raise KafkaError(
            Code.invalid_topic_exception, f"Topic '{name}' collides with existing topic: {collisions[key]}"
        )


def _create_one(image: Image, topic: NewTopic, context: Context) -> tuple[CreatedTopic, list[Record]]:
    settings = _new_settings(topic, context)
    assignments = _assignments(image, topic, context)
    topic_id = context.new_uuid()
    created = CreatedTopic(topic.name, topic_id, len(assignments), len(assignments[0]))
    records = [topic_record(name=topic.name, topic_id=topic_id)]
    records += [
        config_record(resource_type=ResourceType.TOPIC, resource_name=topic.name, key=key, value=value)
        for key, value in settings.items()
    ]
    records += new_partition_records(image, topic_id, assignments, first_index=0)
    return created, records


def _new_settings(topic: NewTopic, context: Context) -> dict[str, str]:
    if missing := [key for key, value in topic.configs if value is None]:
        raise KafkaError(Code.invalid_config, f"Null value not supported for topic configs: {','.join(missing)}")
    settings = {key: value for key, value in topic.configs if value is not None}
    check_settings((ResourceType.TOPIC, topic.name), settings, context)
    return settings


def _assignments(image: Image, topic: NewTopic, context: Context) -> list[Assignment]:
    if topic.assignments:
        return manual_assignments(image, topic)
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        raise KafkaError(
            Code.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.partitions < -1 or topic.partitions == 0:
        raise KafkaError(Code.invalid_partitions, "Number of partitions was set to an invalid non-positive value.")
    factor = context.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    return placed(image, _partitions_asked(topic, context), factor, context)


# -- delete


def delete(image: Image, command: DeleteTopics, context: Context) -> Decision[list[Outcome[TopicRef]]]:
    if not context.topics_may_be_deleted:
        raise KafkaError(Code.topic_deletion_disabled, "delete.topic.enable is false on the active controller.")
    occurrences = Counter(command.topics)
    records: list[Record] = []
    outcomes: dict[TopicRef, Outcome[TopicRef]] = {}
    deleted: set[uuid.UUID] = set()
    for ref in command.topics:
        try:
            check_ref(ref, occurrences)
            topic = _find(image, ref, deleted)
        except KafkaError as error:
            outcomes[ref] = Outcome(ref, error.code, error.message)
        else:
            outcomes[ref] = Outcome(TopicRef(topic.name, topic.id))
            deleted.add(topic.id)
            records.append(remove_topic_record(topic.id))
    return Decision(list(outcomes.values()), records)


def _find(image: Image, ref: TopicRef, deleted: set[uuid.UUID]) -> Topic:
    topic = image.topics_by_id.get(ref.id) if ref.name is None else image.topics.get(ref.name)
    if topic is None:
        raise KafkaError(Code.unknown_topic_id if ref.name is None else Code.unknown_topic_or_partition)
    if topic.id in deleted:
        raise KafkaError(Code.invalid_request, "The provided topic name maps to an ID that was already supplied.")
    return topic


# -- grow


def grow(image: Image, command: CreatePartitions, context: Context) -> Decision[list[Outcome[str]]]:
    occurrences = Counter(each.topic for each in command.topics)
    additions = (
        each.count - len(image.topics[each.topic].partitions) for each in command.topics if each.topic in image.topics
    )
    _check_request_size((max(more, 0) for more in additions), image, context)
    records: list[Record] = []
    outcomes: dict[str, Outcome[str]] = {}
    for wanted in command.topics:
        try:
            check_once(wanted.topic, occurrences)
            records += _grow_one(image, wanted, context)
        except KafkaError as error:
            outcomes[wanted.topic] = Outcome(wanted.topic, error.code, error.message)
        else:
            outcomes[wanted.topic] = Outcome(wanted.topic)
    return Decision(list(outcomes.values()), () if command.validate_only else records)


def _grow_one(image: Image, wanted: NewPartitions, context: Context) -> list[Record]:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise KafkaError(Code.unknown_topic_or_partition)
    if wanted.topic in INTERNAL_TOPICS:
        raise KafkaError(
            Code.invalid_request,
            f"The number of partitions of {wanted.topic} cannot be changed: coordinators find what they keep by it.",
        )
    present = len(topic.partitions)
    _check_increase(wanted, present)
    replicas = [lasting_replicas(state) for state in topic.partitions]
    factor = len(replicas[0])
    if wanted.assignments is None:
        assignments = placed(image, wanted.count - present, factor, context, present=replicas)
    else:
        assignments = [
            checked_assignment(image, index, tuple(replicas), expected=factor)
            for index, replicas in enumerate(wanted.assignments, present)
        ]
    return new_partition_records(image, topic.id, assignments, first_index=present)


def _check_increase(wanted: NewPartitions, present: int) -> None:
    if wanted.count == present:
        raise KafkaError(Code.invalid_partitions, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise KafkaError(
            Code.invalid_partitions,
            f"The topic {wanted.topic} currently has {present} partition(s); {wanted.count} would not be an increase.",
        )
    more = wanted.count - present
    if wanted.assignments is not None and len(wanted.assignments) != more:
        raise bad_assignment(
            f"Attempted to add {more} additional partition(s), but only {len(wanted.assignments)} assignment(s) were "
            "specified."
        )
