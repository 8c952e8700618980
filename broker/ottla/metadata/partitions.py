"""Decisions about leaders and in-sync replicas of partitions. Pure."""

from collections.abc import Iterator, Sequence

import msgspec

from ottla.errors import Code, KafkaError
from ottla.metadata.commands import AlterPartition, Context, Decision, IsrChange, Outcome
from ottla.metadata.image import Image
from ottla.metadata.records import Record, partition_change_record
from ottla.metadata.state import NO_LEADER, PartitionState, Topic

__all__ = ["alter", "leaders_regained", "leaders_taken_away"]


# -- a leader changes the in-sync replicas


def alter(image: Image, command: AlterPartition, context: Context) -> Decision[list[Outcome[PartitionState | None]]]:
    broker = image.brokers.get(command.broker_id)
    if broker is None or broker.epoch != command.broker_epoch:
        raise KafkaError(Code.stale_broker_epoch)
    records: list[Record] = []
    outcomes: list[Outcome[PartitionState | None]] = []
    for change in command.partitions:
        topic = image.topics_by_id.get(change.topic_id)
        state = _partition(topic, change.index)
        code = Code.unknown_topic_id if topic is None else _refusal(image, command.broker_id, state, change)
        if code is not Code.none or state is None:
            outcomes.append(Outcome(None, code))
            continue
        in_sync = tuple(broker for broker, _ in change.isr)
        if in_sync != state.isr:
            records.append(partition_change_record(change.topic_id, change.index, isr=in_sync))
        outcomes.append(Outcome(_with_isr(state, in_sync)))
    return Decision(outcomes, records)


def _partition(topic: Topic | None, index: int) -> PartitionState | None:
    return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None


def _with_isr(state: PartitionState, in_sync: tuple[int, ...]) -> PartitionState:
    if in_sync == state.isr:
        return state
    return msgspec.structs.replace(state, isr=in_sync, partition_epoch=state.partition_epoch + 1)


def _refusal(image: Image, broker_id: int, state: PartitionState | None, change: IsrChange) -> Code:
    """Kafka's checks in Kafka's order: an asker with newer epochs than ours must look for the real controller."""
    if state is None:
        return Code.unknown_topic_or_partition
    if change.leader_epoch > state.leader_epoch or change.partition_epoch > state.partition_epoch:
        return Code.not_controller
    if change.leader_epoch < state.leader_epoch:
        return Code.fenced_leader_epoch
    if broker_id != state.leader:
        return Code.invalid_request
    if change.partition_epoch < state.partition_epoch:
        return Code.invalid_update_version
    ids = [broker for broker, _ in change.isr]
    if len(set(ids)) < len(ids) or not set(ids) <= set(state.replicas) or state.leader not in ids:
        return Code.invalid_request
    return Code.none if all(_is_eligible(image, *member) for member in change.isr) else Code.ineligible_replica


def _is_eligible(image: Image, broker_id: int, epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.is_active and epoch in (-1, broker.epoch)


# -- a broker comes and goes


def leaders_taken_away(image: Image, broker_id: int, *, keep_if_alone: bool = False) -> list[Record]:
    """The broker leaves in-sync sets and leads nothing.

    The last in-sync replica stays in the set, since only it has all committed records; its partition has no leader
    meanwhile, unless `keep_if_alone`: then nothing is written until the broker is back.
    """
    records = []
    for topic, state in _states(image):
        if broker_id not in state.isr:
            continue
        in_sync = tuple(each for each in state.isr if each != broker_id)
        if not in_sync and keep_if_alone:
            continue
        leader = _elect(image, state.replicas, in_sync) if state.leader == broker_id else None
        if in_sync or leader is not None:
            records.append(partition_change_record(topic.id, state.index, isr=in_sync or None, leader=leader))
    return records


def leaders_regained(image: Image, broker_id: int) -> list[Record]:
    """Partitions nobody leads and the broker can; also those it led before it died, with a new leader epoch."""
    return [
        partition_change_record(topic.id, state.index, leader=broker_id)
        for topic, state in _states(image)
        if broker_id in state.isr and state.leader in (NO_LEADER, broker_id)
    ]


def _elect(image: Image, replicas: Sequence[int], in_sync: Sequence[int]) -> int:
    eligible = (
        each for each in replicas if each in in_sync and (broker := image.brokers.get(each)) and broker.is_active
    )
    return next(eligible, NO_LEADER)


def _states(image: Image) -> Iterator[tuple[Topic, PartitionState]]:
    for topic in image.topics.values():
        for state in topic.partitions:
            yield topic, state
