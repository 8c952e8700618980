"""Decisions about brokers: registration, fencing, producer id blocks. Pure."""

from ottla.errors import Code, KafkaError
from ottla.metadata.commands import (
    AllocateProducerIds,
    Context,
    Decision,
    FenceBroker,
    ProducerIdBlock,
    RegisterBroker,
    UnfenceBroker,
    UnregisterBroker,
)
from ottla.metadata.image import Image
from ottla.metadata.partitions import leaders_regained, leaders_taken_away
from ottla.metadata.records import (
    Record,
    broker_change_record,
    broker_record,
    producer_ids_record,
    unregister_broker_record,
)
from ottla.metadata.state import Broker

__all__ = ["allocate_producer_ids", "check_broker_epoch", "fence", "register", "unfence", "unregister"]

PRODUCER_IDS_PER_BLOCK = 1_000
PRODUCER_ID_MAX = 2**63 - 1


def register(image: Image, command: RegisterBroker, context: Context) -> Decision[int]:
    _check_cluster(image, command)
    _check_features(image, command)
    existing = image.brokers.get(command.id)
    same_incarnation = existing is not None and existing.incarnation == command.incarnation
    if existing is not None and not same_incarnation and command.id in context.live_brokers:
        raise KafkaError(
            Code.duplicate_broker_registration,
            f"Another broker is registered with id {command.id} and is alive. If the broker was restarted a moment "
            "ago, this ends with the session of its predecessor.",
        )
    epoch = existing.epoch if existing is not None and same_incarnation else context.next_version
    records = [broker_record(_registration(command, epoch))]
    if existing is not None and not same_incarnation:
        # Its predecessor is gone: partitions that others can lead go to them now.
        records += leaders_taken_away(image, command.id, keep_if_alone=True)
    return Decision(epoch, records)


def _registration(command: RegisterBroker, epoch: int) -> Broker:
    return Broker(
        id=command.id,
        epoch=epoch,
        incarnation=command.incarnation,
        rack=command.rack,
        listeners=tuple(command.listeners),
        grpc_host=command.grpc_host,
        grpc_port=command.grpc_port,
        log_dirs=tuple(command.log_dirs),
        features=command.features,
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
    records = leaders_taken_away(image, command.id)
    return Decision(None, [*records, unregister_broker_record(broker_id=command.id, epoch=broker.epoch)])


def fence(image: Image, command: FenceBroker, context: Context) -> Decision[None]:
    broker = check_broker_epoch(image, command.id, command.epoch)
    if broker.fenced:
        return Decision(None)
    leaving = command.in_controlled_shutdown
    change = broker_change_record(
        broker_id=broker.id,
        epoch=broker.epoch,
        fenced=None if leaving else True,
        in_controlled_shutdown=True if leaving else None,
    )
    return Decision(None, [change, *leaders_taken_away(image, command.id)])


def unfence(image: Image, command: UnfenceBroker, context: Context) -> Decision[None]:
    broker = check_broker_epoch(image, command.id, command.epoch)
    if broker.is_active:
        return Decision(None)
    records: list[Record] = [broker_change_record(broker_id=broker.id, epoch=broker.epoch, fenced=False)]
    return Decision(None, records + leaders_regained(image, command.id))


def allocate_producer_ids(image: Image, command: AllocateProducerIds, context: Context) -> Decision[ProducerIdBlock]:
    check_broker_epoch(image, command.broker_id, command.broker_epoch)
    first = image.next_producer_id
    if first > PRODUCER_ID_MAX - PRODUCER_IDS_PER_BLOCK:
        raise KafkaError(Code.unknown_server_error, "All producer ids that fit in 64 bits have been handed out.")
    following = first + PRODUCER_IDS_PER_BLOCK
    return Decision(ProducerIdBlock(first, PRODUCER_IDS_PER_BLOCK), [producer_ids_record(following)])
