"""Produce: append one batch per partition and answer when as many replicas have it as the client asked for.

v3 one batch of magic 2 per partition · v7 zstd (KIP-110) · v8 record errors (KIP-467) · v9 flexible · v10 current
leader (KIP-951) · v11 TRANSACTION_ABORTABLE · v12 transactions without AddPartitionsToTxn (KIP-890) · v13 topic ids
(KIP-516). Versions 0-2 are advertised, because older librdkafka otherwise falls back to old formats, and never served.
"""

from collections.abc import Awaitable

from ottla.api.call import Answer, Call, Deferred
from ottla.api.registry import MANY_ELEMENTS_MAX, UNLIMITED, api
from ottla.api.requests import ProducePartitionProduceData, ProduceRequest, ProduceTopicProduceData
from ottla.api.slices import sliced
from ottla.api.uncommitted import ACKS_ALL, Uncommitted, refuse
from ottla.errors import Code, KafkaError
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.replica.partition import Partition
from ottla.txn.verifying import Asked
from ottla.wire import batch as batches
from ottla.wire.batch import Batch
from ottla.wire.produce_response import Outcome

ABORTABLE_SINCE, ADDS_SINCE = 11, 12
INLINE_MAX = 1_000  # elements: about 20 ms
ACKS = (ACKS_ALL, 0, 1)
ADMIN_CLIENT = "__admin_client"  # by this client id Kafka knows tools that may write to internal topics


@api(
    key=0,
    versions=(3, 13),
    advertised_from=0,
    pipelined=True,
    elements_max=MANY_ELEMENTS_MAX,
    bytes_max=UNLIMITED,
    inline_max=INLINE_MAX,
)
def produce(request: ProduceRequest, call: Call) -> Answer | Awaitable[Answer | Deferred] | Deferred:
    if call.is_large:
        return _produce_in_slices(request, call)
    uncommitted = Uncommitted(request, call)
    for topic in request.topic_data:
        name = _name(topic, call)
        uncommitted.topics.append((name, [_outcome(name, data, uncommitted) for data in topic.partition_data]))
    return uncommitted.make() if uncommitted.is_complete else uncommitted


async def _produce_in_slices(request: ProduceRequest, call: Call) -> Answer | Deferred:
    """Very many batches: others are served in between. No later request of this connection overtakes them."""
    uncommitted = Uncommitted(request, call)
    with uncommitted.gathering():
        for topic in request.topic_data:
            name, parts = _name(topic, call), sliced(topic.partition_data, call.node.pace)
            uncommitted.topics.append((name, [_outcome(name, data, uncommitted) async for data in parts]))
    return uncommitted.make() if uncommitted.is_complete else uncommitted


def _name(topic: ProduceTopicProduceData, call: Call) -> str | bytes:
    return topic.topic_id or bytes(16) if call.version >= 13 else topic.name


def _outcome(name: str | bytes, data: ProducePartitionProduceData, uncommitted: Uncommitted) -> Outcome:
    """Append now if that is possible; otherwise leave something to wait for."""
    outcome = Outcome(data.index)
    call = uncommitted.call
    try:
        if uncommitted.request.acks not in ACKS:
            raise _unknown_acks(uncommitted.request.acks)
        partition = call.node.replicas.require(name, data.index)
        if partition.topic in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT:
            raise _internal(partition.topic)
        batch = batches.sole(data.records, version=call.version)
        batches.check(batch)
        partition.require_leader()
        if batch.is_transactional and _must_verify(partition, batch, uncommitted.request):
            _append_verified(partition, batch, outcome, uncommitted)
        elif partition.lines.preparing and uncommitted.client in partition.lines.preparing:
            _append_opened(partition, batch, outcome, uncommitted, tried=False)
        elif call.node.replicas.openings.here(batch, partition.log.settings, partition):
            uncommitted.append(partition, batch, outcome)
        else:
            _append_opened(partition, batch, outcome, uncommitted, tried=True)
    except KafkaError as error:
        refuse(outcome, error, name, call)
    return outcome


def _unknown_acks(acks: int) -> KafkaError:
    return KafkaError(Code.invalid_required_acks, f"acks={acks} is not one of all (-1), 0 and 1")


def _internal(topic: str) -> KafkaError:
    return KafkaError(Code.invalid_topic_exception, f"Cannot append to internal topic {topic}: the broker writes it")


def _must_verify(partition: Partition, batch: Batch, request: ProduceRequest) -> bool:
    """Whether the coordinator must be asked first; later batches wait for those that do."""
    if not request.transactional_id:
        raise KafkaError(Code.transactional_id_authorization_failed, "Transactional records need a transactional id")
    producer_id = batch.producer_id
    known = partition.log.producers.in_transaction(producer_id, batch.producer_epoch)
    return not known or producer_id in partition.lines.verifying


def _append_opened(
    partition: Partition, batch: Batch, outcome: Outcome, uncommitted: Uncommitted, *, tried: bool
) -> None:
    """In line behind the connection's earlier batches. `tried`: it could not be opened on the loop."""
    uncommitted.wait(batch, outcome)
    append = uncommitted.append_prepared(partition, batch, outcome, tried=tried)
    partition.lines.preparing.join(uncommitted.client, append)


def _append_verified(partition: Partition, batch: Batch, outcome: Outcome, uncommitted: Uncommitted) -> None:
    """In line behind the producer's earlier batches. The line goes on when it is appended, before it is committed."""
    call = uncommitted.call
    ticket = partition.log.producers.verifications.begin_for(
        batch, adds_partitions=call.version >= ADDS_SINCE, now_ms=call.node.system.clock.wall_ms()
    )

    async def vouched() -> None:
        if not partition.log.producers.in_transaction(batch.producer_id, batch.producer_epoch):
            await _ask_coordinator(partition, batch, uncommitted.request, call)

    uncommitted.wait(batch, outcome)
    append = uncommitted.append_prepared(partition, batch, outcome, ticket=ticket, first=vouched)
    partition.lines.verifying.join(batch.producer_id, append)


async def _ask_coordinator(partition: Partition, batch: Batch, request: ProduceRequest, call: Call) -> None:
    adds = call.version >= ADDS_SINCE
    if not adds and not call.node.settings.broker("transaction.partition.verification.enable"):
        return
    assert request.transactional_id is not None  # as _must_verify has checked
    await call.node.verifier.vouch(
        Asked(request.transactional_id, batch.producer_id, batch.producer_epoch, adds),
        (partition.topic, partition.index),
        knows_abortable=call.version >= ABORTABLE_SINCE,
    )
