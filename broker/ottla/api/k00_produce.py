"""Produce: append one batch per partition and answer when as many replicas have it as the client asked for.

v3 one batch of magic 2 per partition · v7 zstd (KIP-110) · v8 record errors (KIP-467) · v9 flexible · v10 current
leader (KIP-951) · v12 transactions without AddPartitionsToTxn (KIP-890) · v13 topic ids (KIP-516). Versions 0-2 are
advertised, because older librdkafka otherwise falls back to old formats, and never served.
"""

import asyncio
from typing import Any

from ottla.api.call import Answer, Call, Deferred
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.replica.partition import Partition
from ottla.replica.prepare import needs_preparation, prepared
from ottla.wire import batch as batches
from ottla.wire.batch import Batch
from ottla.wire.produce_response import Outcome, encode
from ottla.wire.reader import Malformed

ACKS_ALL = -1


@api(key=0, versions=(3, 13), advertised_from=0)
def produce(request: Any, call: Call) -> Answer | Deferred:
    uncommitted = Uncommitted(request, call)
    for topic in request.topic_data:
        name = topic.topic_id or bytes(16) if call.version >= 13 else topic.name
        uncommitted.topics.append((name, [_outcome(name, data, uncommitted) for data in topic.partition_data]))
    return uncommitted.make() if uncommitted.is_complete() else uncommitted


class Uncommitted(Deferred):
    """A produce request with the outcomes that wait: for the commit of their batches, or first for the worker."""

    __slots__ = ("_timer", "_waiting", "call", "request", "topics")

    def __init__(self, request: Any, call: Call) -> None:
        super().__init__()
        self.request = request
        self.call = call
        self.topics: list[tuple[str | bytes, list[Outcome]]] = []
        self._waiting: list[Outcome] = []
        self._timer: asyncio.TimerHandle | None = None

    def is_complete(self) -> bool:
        """Otherwise it waits, from now on as long as the client said."""
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(self.request.timeout / 1000, self._time_is_up)
        return not self._waiting

    def append(self, partition: Partition, batch: Batch, outcome: Outcome) -> None:
        """Append and fill the outcome, which waits if acks=all has to."""
        acks_all = self.request.acks == ACKS_ALL
        appended = partition.append(batch, acks_all=acks_all)
        outcome.base_offset = appended.base_offset
        outcome.log_append_time = appended.log_append_time
        outcome.log_start_offset = appended.start_offset
        must_wait = acks_all or appended.must_flush
        if must_wait and partition.when_committed(appended.last_offset, lambda code: self._settle(outcome, code)):
            self._waiting.append(outcome)

    def prepare(self, partition: Partition, batch: Batch, outcome: Outcome) -> None:
        """Append after the worker is done with the batch."""
        batch.data = bytes(batch.data)  # the frame is gone when we come back
        self._waiting.append(outcome)
        partition.in_line(self._append_prepared(partition, batch, outcome))

    async def _append_prepared(self, partition: Partition, batch: Batch, outcome: Outcome) -> None:
        """The lock keeps batches that need work in line with those behind them."""
        try:
            async with partition.preparation:
                settings, worker = partition.log.settings, self.call.node.replicas.worker
                ready = await prepared(batch, settings, worker, partition=str(partition))
                self.append(partition, ready, outcome)
        except KafkaError as error:
            _refuse(outcome, error, partition.topic, self.call)
        self._settle(outcome, outcome.error_code)

    def _settle(self, outcome: Outcome, code: int) -> None:
        """Of an outcome that waits twice, for the worker and for the commit, the second settling counts."""
        if outcome not in self._waiting:
            return
        self._waiting.remove(outcome)
        if code:
            outcome.error_code, outcome.base_offset = code, -1
        if not self._waiting:
            self.finish()

    def _time_is_up(self) -> None:
        for outcome in self._waiting:
            outcome.error_code, outcome.base_offset = Code.request_timed_out, -1
        self.finish()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def make(self) -> Answer:
        if self.request.acks != 0:
            return self.call.frame(encode(self.call.version, self.topics))
        for name, outcomes in self.topics:
            for outcome in outcomes:
                if outcome.error_code:  # without an answer, a closed connection is the only sign of trouble
                    raise Malformed(f"produce with acks=0 to {name!r}-{outcome.index} failed: {outcome.message}")
        return None


def _outcome(name: str | bytes, data: Any, uncommitted: Uncommitted) -> Outcome:
    outcome = Outcome(data.index)
    call = uncommitted.call
    try:
        _check_request(uncommitted.request)
        partition = call.node.replicas.require(name, data.index)
        batch = batches.sole(data.records, version=call.version)
        batches.check(batch)
        if partition.preparing or needs_preparation(batch, partition.log.settings):
            uncommitted.prepare(partition, batch, outcome)
        else:
            uncommitted.append(partition, batch, outcome)
    except KafkaError as error:
        _refuse(outcome, error, name, call)
    return outcome


def _check_request(request: Any) -> None:
    if request.acks not in (ACKS_ALL, 0, 1):
        raise KafkaError(Code.invalid_required_acks, f"acks={request.acks} is not one of all (-1), 0 and 1")
    if request.transactional_id is not None:
        raise KafkaError(Code.invalid_txn_state, "Transactions are not served by this broker")


def _refuse(outcome: Outcome, error: KafkaError, name: str | bytes, call: Call) -> None:
    outcome.error_code = error.code
    outcome.message = error.message
    outcome.record_errors = getattr(error, "record_errors", ())
    if error.code == Code.not_leader_or_follower:
        outcome.leader = call.node.replicas.leader_of(name, outcome.index)
