"""Replica assignments for new partitions, placed or given by hand, and their first records. Pure."""

import uuid
from collections.abc import Mapping, Sequence

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import Context, NewTopic
from ottla.metadata.decisions.placement import Candidate, place
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, partition_record
from ottla.metadata.model.state import PartitionState

__all__ = [
    "Assignment",
    "bad_assignment",
    "check_replicas",
    "checked_assignment",
    "manual_assignments",
    "new_partition_records",
    "placed",
]

Assignment = tuple[int, ...]


def placed(
    image: Image, partitions: int, replication_factor: int, context: Context, *, present: Sequence[Assignment] = ()
) -> list[Assignment]:
    """`present`: the topic's existing partitions; new ones balance with them."""
    candidates = [Candidate(each.id, each.rack, each.is_active) for each in image.brokers.values()]
    return place(
        candidates,
        partitions=partitions,
        replication_factor=replication_factor,
        random=context.random,
        present=present,
    )


def manual_assignments(image: Image, topic: NewTopic) -> list[Assignment]:
    for what, number in (("replication factor", topic.replication_factor), ("numPartitions", topic.partitions)):
        if number != -1:
            raise KafkaError(
                Code.invalid_request, f"A manual partition assignment was specified, but {what} was not set to -1."
            )
    by_index: dict[int, Assignment] = {}
    for index, replicas in topic.assignments:
        if index in by_index:
            raise bad_assignment(f"Found multiple manual partition assignments for partition {index}")
        by_index[index] = checked_assignment(image, index, tuple(replicas), expected=_first_length(by_index))
    if set(by_index) != set(range(len(by_index))):
        raise bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [by_index[index] for index in range(len(by_index))]


def _first_length(assignments: Mapping[int, Assignment]) -> int | None:
    return next((len(replicas) for replicas in assignments.values()), None)


def checked_assignment(image: Image, index: int, replicas: Assignment, *, expected: int | None) -> Assignment:
    check_replicas(image, replicas, expected=expected)
    if not any(image.brokers[broker].is_active for broker in replicas):
        raise bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown."
        )
    return replicas


def check_replicas(image: Image, replicas: Assignment, *, expected: int | None = None) -> None:
    if not replicas:
        raise bad_assignment("The manual partition assignment includes an empty replica list.")
    for broker in sorted(replicas):
        if broker not in image.brokers:
            raise bad_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if replicas.count(broker) > 1:
            raise bad_assignment(f"The manual partition assignment includes the broker {broker} more than once.")
    if expected is not None and len(replicas) != expected:
        raise bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {expected} replica(s)."
        )


def bad_assignment(message: str) -> KafkaError:
    return KafkaError(Code.invalid_replica_assignment, message)


def new_partition_records(
    image: Image, topic_id: uuid.UUID, assignments: Sequence[Assignment], *, first_index: int
) -> list[Record]:
    brokers = image.brokers
    active = {broker.id for broker in brokers.values() if broker.is_active}
    directories = {broker.id: broker.directory_for_new_replica() for broker in brokers.values()}
    records = []
    for index, replicas in enumerate(assignments, first_index):
        in_sync = tuple(broker for broker in replicas if broker in active)
        state = PartitionState(
            index, replicas, in_sync, in_sync[0], directories=tuple(directories[broker] for broker in replicas)
        )
        records.append(partition_record(topic_id, state))
    return records
