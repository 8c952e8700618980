"""Decisions about leaders and in-sync replicas of partitions. Pure."""

from collections.abc import Callable, Iterator

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterPartition, Context, Decision, IsrChange, Outcome
from ottla.metadata.decisions.elections import Rules, change_record, changed
from ottla.metadata.decisions.topic_rules import rules_of
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record
from ottla.metadata.model.state import NO_LEADER, PartitionState, Topic

__all__ = ["alter", "broker_left", "broker_returned", "recompute_elr"]


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
        if code is not Code.none or state is None or topic is None:
            outcomes.append(Outcome(None, code))
            continue
        new = changed(state, rules_of(image, topic.name, context), isr=tuple(broker for broker, _ in change.isr))
        records += _records(topic, state, new)
        outcomes.append(_answer(new, command.broker_id))
    return Decision(outcomes, records)


def _answer(state: PartitionState, asker: int) -> Outcome[PartitionState | None]:
    """The change may complete a reassignment and end the sender's leadership: the code is an error, the change is
    made."""
    return Outcome(state) if state.leader == asker else Outcome(None, Code.new_leader_elected)


def _partition(topic: Topic | None, index: int) -> PartitionState | None:
    return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None


def _refusal(image: Image, broker_id: int, state: PartitionState | None, change: IsrChange) -> Code:
    """Kafka's checks in Kafka's order. A sender with newer epochs than ours must ask the active controller."""
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
    eligible = all(_may_join(image, *member) for member in change.isr) and not set(ids).intersection(state.lost)
    return Code.none if eligible else Code.ineligible_replica


def _may_join(image: Image, broker_id: int, epoch: int) -> bool:
    return image.is_active(broker_id) and epoch in (-1, image.brokers[broker_id].epoch)


# -- brokers


def broker_left(image: Image, broker_id: int, context: Context, *, unclean: bool = False) -> list[Record]:
    """Remove the broker from all in-sync sets and leaderships; after an `unclean` shutdown also from all ELRs."""

    def left(state: PartitionState, rules: Rules) -> PartitionState:
        in_sync = tuple(each for each in state.isr if each != broker_id)
        return changed(state, rules, isr=in_sync, unclean_shutdown={broker_id} if unclean else frozenset())

    return _changes(
        image,
        context,
        concerned=lambda state: broker_id in state.isr or (unclean and broker_id in state.elr),
        change=left,
        may_lead=lambda each: each != broker_id and image.is_active(each),
    )


def broker_returned(image: Image, broker_id: int, context: Context) -> list[Record]:
    """Elect leaders for partitions without one, if the broker makes that possible."""
    return _changes(
        image,
        context,
        concerned=lambda state: state.leader == NO_LEADER,
        change=changed,
        may_lead=lambda each: each == broker_id or image.is_active(each),
    )


def recompute_elr(image: Image, context: Context) -> list[Record]:
    """After a change of min.insync.replicas: recompute the ELR of all partitions, on the image with the change."""
    return _changes(image, context, concerned=lambda state: bool(state.elr), change=changed, may_lead=image.is_active)


def _changes(
    image: Image,
    context: Context,
    *,
    concerned: Callable[[PartitionState], bool],
    change: Callable[[PartitionState, Rules], PartitionState],
    may_lead: Callable[[int], bool],
) -> list[Record]:
    records: list[Record] = []
    for topic in image.topics.values():
        states = [state for state in topic.partitions if concerned(state)]
        if states:
            rules = rules_of(image, topic.name, context, may_lead=may_lead)
            for state in states:
                records += _records(topic, state, change(state, rules))
    return records


def _records(topic: Topic, old: PartitionState, new: PartitionState) -> Iterator[Record]:
    record = change_record(topic.id, old, new)
    if record is not None:
        yield record
