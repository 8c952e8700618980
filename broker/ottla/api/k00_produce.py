"""Produce: append one batch per partition and answer when as many replicas have it as the client asked for.

v3 one batch of magic 2 per partition · v7 zstd (KIP-110) · v8 record errors (KIP-467) · v9 flexible · v10 current
leader (KIP-951) · v11 TRANSACTION_ABORTABLE · v12 transactions without AddPartitionsToTxn (KIP-890) · v13 topic ids
(KIP-516). Versions 0-2 are advertised, because older librdkafka otherwise falls back to old formats, and never served.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.cluster_view import INTERNAL_TOPICS
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.replica.prepare import needs_preparation, prepared
from ottla.storage.verification import Ticket
from ottla.txn.verifying import Asked
from ottla.wire import batch as batches
from ottla.wire.batch import Batch
from ottla.wire.produce_response import Outcome, encode
from ottla.wire.reader import Malformed

ACKS_ALL = -1
ABORTABLE_SINCE, ADDS_SINCE = 11, 12
ADMIN_CLIENT = "__admin_client"  # by this client id Kafka knows tools that may write to internal topics


@api(key=0, versions=(3, 13), advertised_from=0)
def produce(request: Any, call: Call) -> Answer | Awaitable[Answer]:
    topics: list[tuple[str | bytes, list[Outcome]]] = []
    waits: list[Awaitable[None]] = []
    for topic in request.topic_data:
        name = topic.topic_id or bytes(16) if call.version >= 13 else topic.name
        outcomes = [_outcome(name, data, request, call, waits) for data in topic.partition_data]
        topics.append((name, outcomes))
    if waits:
        return _answer_later(topics, waits, request, call)
    return _answer(topics, request, call)


def _outcome(name: str | bytes, data: Any, request: Any, call: Call, waits: list[Awaitable[None]]) -> Outcome:
    """Append now if that is possible; otherwise, or until the append is committed, leave something to wait for."""
    outcome = Outcome(data.index)
    try:
        _check_request(request)
        partition = call.node.replicas.require(name, data.index)
        if partition.topic in INTERNAL_TOPICS and call.client_id != ADMIN_CLIENT:
            raise KafkaError(
                Code.invalid_topic_exception, f"Cannot append to internal topic {partition.topic}: the broker writes it"
            )
        batch = batches.sole(data.records, version=call.version)
        batches.check(batch)
        if batch.is_transactional and _must_verify(partition, batch, request):
            batch.data = bytes(batch.data)
            waits.append(_append_verified(partition, batch, outcome, request, call))
        elif partition.preparing or needs_preparation(batch, partition.log.settings):
            batch.data = bytes(batch.data)  # the frame is gone when we come back
            waits.append(partition.in_line(_append_prepared(partition, batch, outcome, request, call)))
        elif (commit := _append(partition, batch, outcome, request.acks)) is not None:
            waits.append(_commit(commit, outcome, request.timeout))
    except KafkaError as error:
        _refuse(outcome, error, name, call)
    return outcome


def _check_request(request: Any) -> None:
    if request.acks not in (ACKS_ALL, 0, 1):
        raise KafkaError(Code.invalid_required_acks, f"acks={request.acks} is not one of all (-1), 0 and 1")


def _must_verify(partition: Partition, batch: Batch, request: Any) -> bool:
    """Whether the coordinator must be asked first; later batches wait for those that do."""
    if not request.transactional_id:
        raise KafkaError(Code.transactional_id_authorization_failed, "Transactional records need a transactional id")
    partition.require_leader()
    producer_id = batch.producer_id
    known = partition.log.producers.in_transaction(producer_id, batch.producer_epoch)
    return not known or producer_id in partition.verifying


def _append_verified(
    partition: Partition, batch: Batch, outcome: Outcome, request: Any, call: Call
) -> "Awaitable[None]":
    """In line behind the producer's earlier batches. The line goes on when it is appended, before it is committed."""
    ticket = partition.log.producers.verifications.begin_for(
        batch, adds_partitions=call.version >= ADDS_SINCE, now_ms=call.node.system.clock.wall_ms()
    )
    verifying = _verified_append(partition, batch, outcome, request, call, ticket)
    return _after_line(partition.in_line_of(batch.producer_id, verifying), outcome, request.timeout)


async def _verified_append(
    partition: Partition, batch: Batch, outcome: Outcome, request: Any, call: Call, ticket: Ticket
) -> "asyncio.Future[None] | None":
    producers = partition.log.producers
    try:
        if not producers.in_transaction(batch.producer_id, batch.producer_epoch):
            await _ask_coordinator(partition, batch, request, call)
        async with partition.preparation:
            ready = batch
            if needs_preparation(batch, partition.log.settings):
                settings, worker = partition.log.settings, call.node.replicas.worker
                ready = await prepared(batch, settings, worker, partition=str(partition))
            return _append(partition, ready, outcome, request.acks, ticket)
    except KafkaError as error:
        _refuse(outcome, error, partition.topic, call)
        return None


async def _ask_coordinator(partition: Partition, batch: Batch, request: Any, call: Call) -> None:
    adds = call.version >= ADDS_SINCE
    if not adds and not call.node.settings.broker("transaction.partition.verification.enable"):
        return
    await call.node.verifier.vouch(
        Asked(request.transactional_id, batch.producer_id, batch.producer_epoch, adds),
        (partition.topic, partition.index),
        knows_abortable=call.version >= ABORTABLE_SINCE,
    )


async def _after_line(line: "asyncio.Task[asyncio.Future[None] | None]", outcome: Outcome, timeout_ms: int) -> None:
    commit = await asyncio.shield(line)
    if commit is not None:
        await _commit(commit, outcome, timeout_ms)


def _append(
    partition: Partition, batch: Batch, outcome: Outcome, acks: int, ticket: Ticket | None = None
) -> "asyncio.Future[None] | None":
    """Append and fill the outcome; a future when acks=all has to wait."""
    appended = partition.append(batch, acks_all=acks == ACKS_ALL, ticket=ticket)
    outcome.base_offset = appended.base_offset
    outcome.log_append_time = appended.log_append_time
    outcome.log_start_offset = appended.start_offset
    return partition.committed(appended.last_offset) if acks == ACKS_ALL or appended.must_flush else None


async def _append_prepared(partition: Partition, batch: Batch, outcome: Outcome, request: Any, call: Call) -> None:
    """The lock keeps batches that need work in line with those behind them."""
    try:
        async with partition.preparation:
            settings, worker = partition.log.settings, call.node.replicas.worker
            ready = await prepared(batch, settings, worker, partition=str(partition))
            commit = _append(partition, ready, outcome, request.acks)
    except KafkaError as error:
        _refuse(outcome, error, partition.topic, call)
        return
    if commit is not None:
        await _commit(commit, outcome, request.timeout)


async def _commit(commit: "asyncio.Future[None]", outcome: Outcome, timeout_ms: int) -> None:
    try:
        await asyncio.wait_for(commit, timeout_ms / 1000)
    except TimeoutError:
        outcome.error_code, outcome.base_offset = Code.request_timed_out, -1
    except KafkaError as error:
        outcome.error_code, outcome.base_offset = error.code, -1


def _refuse(outcome: Outcome, error: KafkaError, name: str | bytes, call: Call) -> None:
    outcome.error_code = error.code
    outcome.message = error.message
    outcome.record_errors = getattr(error, "record_errors", ())
    if error.code == Code.not_leader_or_follower:
        outcome.leader = call.node.replicas.leader_of(name, outcome.index)


async def _answer_later(topics: Any, waits: list[Awaitable[None]], request: Any, call: Call) -> Answer:
    await asyncio.gather(*waits)
    return _answer(topics, request, call)


def _settle(call: Call) -> int:
    meter = call.allowance.produce if call.allowance is not None else None
    return call.settle(0 if meter is None else meter.charge(call.request_bytes))


def _answer(topics: Any, request: Any, call: Call) -> Answer:
    throttle_ms = _settle(call) if call.allowance is not None else 0
    if request.acks != 0:
        return call.frame(encode(call.version, topics, throttle_ms=throttle_ms))
    for name, outcomes in topics:
        for outcome in outcomes:
            if outcome.error_code:  # without an answer, a closed connection is the only sign that something is wrong
                raise Malformed(f"produce with acks=0 to {name!r}-{outcome.index} failed: {outcome.message}")
    return None
