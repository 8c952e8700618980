"""Decisions about brokers: registration, fencing, failed log dirs, producer id blocks. Pure."""

import uuid

from ottla.errors import Code, KafkaError
from ottla.ids import uuid_text
from ottla.metadata.decisions.commands import (
    AllocateProducerIds,
    Context,
    Decision,
    FenceBroker,
    ProducerIdBlock,
    RegisterBroker,
    ReplicasLost,
    UnfenceBroker,
    UnregisterBroker,
)
from ottla.metadata.decisions.elections import change_record, changed
from ottla.metadata.decisions.partitions import broker_left, broker_returned
from ottla.metadata.decisions.topic_rules import rules_of
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import (
    Record,
    broker_change_record,
    broker_record,
    partition_change_record,
    producer_ids_record,
    unregister_broker_record,
)
from ottla.metadata.model.state import DIRECTORY_UNASSIGNED, Broker, PartitionState

__all__ = ["allocate_producer_ids", "check_broker_epoch", "fence", "lose_replicas", "register", "unfence", "unregister"]

PRODUCER_IDS_PER_BLOCK = 1_000
PRODUCER_ID_MAX = 2**63 - 1


def register(image: Image, command: RegisterBroker, context: Context) -> Decision[int]:
    _check_cluster(image, command)
    existing = image.brokers.get(command.id)
    if existing is not None and existing.incarnation == command.incarnation:
        _check_abilities(image, command)
        amended = _registration(command, existing.epoch, existing)
        return Decision(existing.epoch, [broker_record(amended)])
    if existing is not None:
        _check_predecessor(existing, context)
    _check_abilities(image, command)
    epoch = context.next_version
    records = [broker_record(_registration(command, epoch))]
    if existing is not None:
        unclean = command.previous_epoch != existing.epoch
        records += broker_left(image, command.id, context, unclean=unclean)
        records += _found_again(image, command)
    return Decision(epoch, records)


def _found_again(image: Image, command: RegisterBroker) -> list[Record]:
    """A registration resets replicas in failed log dirs: the broker reports those that are still lost."""
    where = command.log_dirs[0] if len(command.log_dirs) == 1 else DIRECTORY_UNASSIGNED
    return [
        partition_change_record(topic.id, state.index, directories=_replaced(state, command.id, where))
        for topic in image.topics.values()
        for state in topic.partitions
        if command.id in state.lost
    ]


def _replaced(state: PartitionState, broker_id: int, where: uuid.UUID) -> list[uuid.UUID]:
    pairs = zip(state.replicas, state.directories, strict=True)
    return [where if each == broker_id else present for each, present in pairs]


def _check_predecessor(existing: Broker, context: Context) -> None:
    """Whether the session of the existing registration must end first; not after a controlled shutdown."""
    if existing.id in context.live_brokers and not existing.in_controlled_shutdown:
        raise KafkaError(
            Code.duplicate_broker_registration,
            f"Another broker is registered with id {existing.id} and is alive. If the broker was restarted a moment "
            "ago, this ends with the session of its predecessor.",
        )


def _check_abilities(image: Image, command: RegisterBroker) -> None:
    _check_features(image, command)
    _check_directories(image, command)


def _registration(command: RegisterBroker, epoch: int, existing: Broker | None = None) -> Broker:
    return Broker(
        id=command.id,
        epoch=epoch,
        incarnation=command.incarnation,
        rack=command.rack,
        listeners=tuple(command.listeners),
        grpc_host=command.grpc_host,
        grpc_port=command.grpc_port,
        control_port=command.control_port,
        log_dirs=tuple(command.log_dirs),
        features=command.features,
        fenced=existing is None or existing.fenced,
        in_controlled_shutdown=existing is not None and existing.in_controlled_shutdown,
    )


def _check_cluster(image: Image, command: RegisterBroker) -> None:
    if command.cluster_id != image.cluster_id:
        raise KafkaError(
            Code.inconsistent_cluster_id,
            f"Expected cluster ID {image.cluster_id}, but got cluster ID {command.cluster_id}",
        )


def _check_features(image: Image, command: RegisterBroker) -> None:
    for name, level in image.features.items():
        low, high = command.features.get(name, (0, 0))
        if not low <= level <= high:
            raise KafkaError(
                Code.unsupported_version,
                f"Unable to register because the broker does not support finalized version {level} of {name}. "
                f"The broker wants a version between {low} and {high}, inclusive.",
            )


def _check_directories(image: Image, command: RegisterBroker) -> None:
    wanted = command.log_dirs
    if DIRECTORY_UNASSIGNED in wanted:
        raise KafkaError(Code.invalid_registration, "Reserved directory ID in request")
    if len(set(wanted)) < len(wanted):
        raise KafkaError(Code.invalid_registration, "Duplicate directory ID in request")
    for broker in image.brokers.values():
        taken = set(wanted).intersection(broker.log_dirs) if broker.id != command.id else ()
        for directory in taken:
            raise KafkaError(
                Code.invalid_registration,
                f"Broker {broker.id} is already registered with directory {uuid_text(directory)}",
            )


def check_broker_epoch(image: Image, broker_id: int, epoch: int) -> Broker:
    broker = image.brokers.get(broker_id)
    if broker is None:
        raise KafkaError(Code.stale_broker_epoch, f"No broker registration found for broker id {broker_id}")
    if broker.epoch != epoch:
        raise KafkaError(Code.stale_broker_epoch, f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}")
    return broker


def unregister(image: Image, command: UnregisterBroker, context: Context) -> Decision[None]:
    broker = image.brokers.get(command.id)
    if broker is None:
        raise KafkaError(Code.broker_id_not_registered, f"Broker ID {command.id} is not currently registered")
    records = broker_left(image, command.id, context, unclean=True)
    return Decision(None, [*records, unregister_broker_record(broker_id=command.id, epoch=broker.epoch)])


def fence(image: Image, command: FenceBroker, context: Context) -> Decision[None]:
    broker = check_broker_epoch(image, command.id, command.epoch)
    leaving = command.in_controlled_shutdown
    if broker.fenced or (leaving and broker.in_controlled_shutdown):
        return Decision(None)
    change = broker_change_record(
        broker_id=broker.id,
        epoch=broker.epoch,
        fenced=None if leaving else True,
        in_controlled_shutdown=True if leaving else None,
    )
    return Decision(None, [change, *broker_left(image, command.id, context)])


def unfence(image: Image, command: UnfenceBroker, context: Context) -> Decision[None]:
    """A broker in controlled shutdown cannot be unfenced: its next incarnation registers."""
    broker = check_broker_epoch(image, command.id, command.epoch)
    if not broker.fenced or broker.in_controlled_shutdown:
        return Decision(None)
    change = broker_change_record(broker_id=broker.id, epoch=broker.epoch, fenced=False)
    return Decision(None, [change, *broker_returned(image, command.id, context)])


def allocate_producer_ids(image: Image, command: AllocateProducerIds, context: Context) -> Decision[ProducerIdBlock]:
    check_broker_epoch(image, command.broker_id, command.broker_epoch)
    first = image.next_producer_id
    if first > PRODUCER_ID_MAX - PRODUCER_IDS_PER_BLOCK:
        raise KafkaError(Code.unknown_server_error, "All producer ids that fit in 64 bits have been handed out.")
    following = first + PRODUCER_IDS_PER_BLOCK
    return Decision(ProducerIdBlock(first, PRODUCER_IDS_PER_BLOCK), [producer_ids_record(following)])


def lose_replicas(image: Image, command: ReplicasLost, context: Context) -> Decision[None]:
    """Replicas in a failed log dir: remove them from isr and elr; they cannot lead until the broker registers again."""
    broker_id = check_broker_epoch(image, command.broker_id, command.broker_epoch).id
    records: list[Record] = []
    for topic_id, index in dict.fromkeys(command.partitions):
        topic = image.topics_by_id.get(topic_id)
        state = None if topic is None else image.partition(topic.name, index)
        if topic is None or state is None or broker_id not in state.replicas:
            continue  # deleted or moved meanwhile
        in_sync = tuple(each for each in state.isr if each != broker_id)
        rules = rules_of(image, topic.name, context)
        new = changed(state, rules, isr=in_sync, unclean_shutdown={broker_id}, lost={broker_id})
        record = change_record(topic.id, state, new)
        if record is not None:
            records.append(record)
    return Decision(None, records)
