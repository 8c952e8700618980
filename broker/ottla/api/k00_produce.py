"""Produce: append one batch per partition and answer when as many replicas have it as the client asked for.

v3 one batch of magic 2 per partition · v7 zstd (KIP-110) · v8 record errors (KIP-467) · v9 flexible · v10 current
leader (KIP-951) · v11 TRANSACTION_ABORTABLE · v12 transactions without AddPartitionsToTxn (KIP-890) · v13 topic ids
(KIP-516). Versions 0-2 are advertised, because older librdkafka otherwise falls back to old formats, and never served.
"""

from collections.abc import Awaitable

from ottla.api.batch_verification import BatchVerification, must_verify
from ottla.api.call import Answer, Call, Deferred
from ottla.api.pacing import sliced
from ottla.api.registry import MANY_ELEMENTS_MAX, UNLIMITED, api
from ottla.api.requests import ProducePartitionProduceData, ProduceRequest, ProduceTopicProduceData
from ottla.api.uncommitted import ACKS_ALL, Uncommitted
from ottla.errors import Code, KafkaError
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.wire import batch as batches
from ottla.wire.batch import Batch
from ottla.wire.produce_response import Outcome

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
def produce(
    request: ProduceRequest, call: Call, replicas: ReplicaHost, verification: BatchVerification
) -> Answer | Awaitable[Answer | Deferred] | Deferred:
    uncommitted = Uncommitted(request, call, replicas)
    if call.is_large:
        return _produce_in_slices(uncommitted, verification)
    for topic in request.topic_data:
        name = _name(topic, call)
        outcomes = [_outcome(name, data, uncommitted, verification) for data in topic.partition_data]
        uncommitted.topics.append((name, outcomes))
    return uncommitted.make() if uncommitted.is_complete else uncommitted


async def _produce_in_slices(uncommitted: Uncommitted, verification: BatchVerification) -> Answer | Deferred:
    """Very many batches: others are served in between. No later request of this connection overtakes them."""
    call = uncommitted.call
    with uncommitted.gathering():
        for topic in uncommitted.request.topic_data:
            name, parts = _name(topic, call), sliced(topic.partition_data, call.long_work.pace)
            outcomes = [_outcome(name, data, uncommitted, verification) async for data in parts]
            uncommitted.topics.append((name, outcomes))
    return uncommitted.make() if uncommitted.is_complete else uncommitted


def _name(topic: ProduceTopicProduceData, call: Call) -> str | bytes:
    return topic.topic_id or bytes(16) if call.version >= 13 else topic.name


def _outcome(
    name: str | bytes, data: ProducePartitionProduceData, uncommitted: Uncommitted, verification: BatchVerification
) -> Outcome:
    """Append now if that is possible; otherwise leave something to wait for."""
    outcome = Outcome(data.index)
    call, replicas = uncommitted.call, uncommitted.replicas
    try:
        if uncommitted.request.acks not in ACKS:
            raise _unknown_acks(uncommitted.request.acks)
        if uncommitted.writable is not None:
            _authorize(name, uncommitted)
        partition = replicas.require(name, data.index)
        if partition.topic in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT:
            raise _internal(partition.topic)
        batch = batches.sole(data.records, version=call.version)
        batches.check(batch)
        if batch.is_transactional and not uncommitted.may_transact:
            raise _not_in_transactions()
        partition.require_leader()
        if batch.is_transactional and must_verify(partition, batch, uncommitted.request):
            _append_verified(partition, batch, outcome, uncommitted, verification)
        elif partition.pending_batches.preparing and uncommitted.client in partition.pending_batches.preparing:
            _append_opened(partition, batch, outcome, uncommitted, tried=False)
        elif replicas.validation.check_on_loop(batch, partition.log.settings, partition):
            uncommitted.append(partition, batch, outcome)
        else:
            _append_opened(partition, batch, outcome, uncommitted, tried=True)
    except KafkaError as error:
        uncommitted.refuse(outcome, error, name)
    return outcome


def _authorize(name: str | bytes, uncommitted: Uncommitted) -> None:
    if uncommitted.request.transactional_id is not None and not uncommitted.may_transact:
        raise _not_in_transactions()
    assert uncommitted.writable is not None
    uncommitted.writable.require(name)


def _not_in_transactions() -> KafkaError:
    text = "Not authorized: this needs WRITE on the transactional id of the request."
    return KafkaError(Code.transactional_id_authorization_failed, text)


def _unknown_acks(acks: int) -> KafkaError:
    return KafkaError(Code.invalid_required_acks, f"acks={acks} is not one of all (-1), 0 and 1")


def _internal(topic: str) -> KafkaError:
    return KafkaError(Code.invalid_topic_exception, f"Cannot append to internal topic {topic}: the broker writes it")


def _append_opened(
    partition: Partition, batch: Batch, outcome: Outcome, uncommitted: Uncommitted, *, tried: bool
) -> None:
    """In line behind the connection's earlier batches. `tried`: it could not be opened on the loop."""
    uncommitted.wait(batch, outcome)
    append = uncommitted.append_prepared(partition, batch, outcome, tried=tried)
    partition.pending_batches.preparing.join(uncommitted.client, append)


def _append_verified(
    partition: Partition, batch: Batch, outcome: Outcome, uncommitted: Uncommitted, verification: BatchVerification
) -> None:
    """In line behind the producer's earlier batches. The line goes on when it is appended, before it is committed."""
    version = uncommitted.call.version
    ticket = verification.begin(partition, batch, version=version)

    async def verified() -> None:
        await verification.verified(partition, batch, uncommitted.request, version=version)

    uncommitted.wait(batch, outcome)
    append = uncommitted.append_prepared(partition, batch, outcome, ticket=ticket, first=verified)
    partition.pending_batches.verifying.join(batch.producer_id, append)
