"""Transactions as records of the state topic: Kafka's TransactionLogKey v0 and TransactionLogValue v0-1. Pure."""

from collections.abc import Callable

from ottla.coordination.core.effects import Effects, Send, Write
from ottla.coordination.core.records import array, field, reading, writing
from ottla.txn.core.states import ENDING, State
from ottla.txn.core.transaction import NONE, TopicPartition, Transaction
from ottla.wire.schema import Struct

__all__ = ["effects_of", "key_of", "read_key", "read_value", "value_of"]


def _value_struct(version: int) -> Struct:
    flexible = version >= 1
    partitions = Struct(
        "PartitionsSchema",
        version,
        flexible,
        (
            field("topic", "string", flexible=flexible, nullable=False),
            array("partition_ids", "int32", flexible=flexible, nullable=False),
        ),
    )
    fields = [
        field("producer_id", "int64", flexible=flexible),
        field("producer_epoch", "int16", flexible=flexible),
        field("transaction_timeout_ms", "int32", flexible=flexible),
        field("transaction_status", "int8", flexible=flexible),
        array("transaction_partitions", partitions, flexible=flexible),
        field("transaction_last_update_timestamp_ms", "int64", flexible=flexible),
        field("transaction_start_timestamp_ms", "int64", flexible=flexible),
    ]
    if flexible:
        fields += [
            field("previous_producer_id", "int64", flexible=True, tag=0, default=NONE),
            field("next_producer_id", "int64", flexible=True, tag=1, default=NONE),
            field("client_transaction_version", "int16", flexible=True, tag=2, default=0),
        ]
    return Struct("TransactionLogValue", version, flexible, tuple(fields))


_key_struct = Struct("TransactionLogKey", 0, False, (field("transactional_id", "string", nullable=False),))
_read_key = reading(_key_struct)
_write_key = writing(_key_struct)
_read_value = reading(_value_struct(0), _value_struct(1))
_write_value = writing(_value_struct(1))


def key_of(transactional_id: str) -> bytes:
    return _write_key({"transactional_id": transactional_id})


def read_key(key: memoryview) -> str:
    return str(_read_key(key).transactional_id)


def value_of(transaction: Transaction) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    lines = [{"topic": topic, "partition_ids": indexes} for topic, indexes in by_topic.items()]
    return _write_value(
        {
            "producer_id": transaction.producer_id,
            "producer_epoch": transaction.epoch,
            "transaction_timeout_ms": transaction.timeout_ms,
            "transaction_status": transaction.state,
            "transaction_partitions": None if transaction.state is State.EMPTY else lines,
            "transaction_last_update_timestamp_ms": transaction.updated_ms,
            "transaction_start_timestamp_ms": transaction.started_ms,
            "previous_producer_id": transaction.previous_producer_id,
            "next_producer_id": transaction.next_producer_id,
            "client_transaction_version": transaction.client_version,
        }
    )


def effects_of(transaction: Transaction, on_appended: Callable[[int], None]) -> Effects:
    """Write a decision. If it ends the transaction, send it to the leaders of its partitions as markers."""
    effects: Effects = [Write([(key_of(transaction.id), value_of(transaction))], on_appended=on_appended)]
    if transaction.state in ENDING:
        effects.append(Send(transaction))
    return effects


def read_value(transactional_id: str, value: memoryview) -> Transaction:
    """Raises ValueError for a state that is never written. The log does not have `last_epoch`: the next coordinator
    recognizes a retry by the version instead."""
    read = _read_value(value)
    version = read.client_transaction_version or 0
    state = State(read.transaction_status)
    partitions: set[TopicPartition] = set()
    for line in read.transaction_partitions or ():
        partitions.update((line.topic, index) for index in line.partition_ids)
    return Transaction(
        id=transactional_id,
        producer_id=read.producer_id,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        state=state,
        partitions=frozenset(partitions),
        started_ms=read.transaction_start_timestamp_ms,
        updated_ms=read.transaction_last_update_timestamp_ms,
        client_version=version,
    )
