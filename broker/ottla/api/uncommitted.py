"""A produce request until its answer: the outcome of each batch, and those that are not committed yet."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from ottla.api.authorizing import may, topic_access
from ottla.api.call import Answer, Call, Deferred
from ottla.api.requests import ProduceRequest
from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.security.core.access import Operation, Resource
from ottla.storage.core.verification import Ticket
from ottla.wire.batch import Batch
from ottla.wire.produce_response import Outcome, encode
from ottla.wire.reader import Malformed

__all__ = ["ACKS_ALL", "Uncommitted"]

log = logging.getLogger("ottla.api")
refused = logging.getLogger("ottla.produce")

ACKS_ALL = -1
# Logged, so that the client that sends them can be found.
LOGGED = (Code.invalid_record, Code.corrupt_message, Code.unsupported_compression_type, Code.message_too_large)


class Uncommitted(Deferred):
    """Outcomes wait for the commit of their batches, and some first for the worker or the transaction coordinator."""

    __slots__ = (
        "_is_gathering", "_timer", "_waiting", "call", "may_transact", "replicas", "request", "topics", "writable",
    )  # fmt: skip

    def __init__(self, request: ProduceRequest, call: Call, replicas: ReplicaHost) -> None:
        super().__init__()
        self.request = request
        self.call = call
        self.replicas = replicas
        self.topics: list[tuple[str | bytes, list[Outcome]]] = []
        self._waiting: dict[int, tuple[Outcome, int]] = {}  # by identity: waiting outcomes, and how often
        self._timer: asyncio.TimerHandle | None = None
        self._is_gathering = False
        self.writable = topic_access(call, Operation.WRITE, replicas.image)
        """None: all topics."""
        self.may_transact = self.writable is None or self._may_use(request.transactional_id)

    def _may_use(self, transactional_id: str | None) -> bool:
        if transactional_id is None:
            return False
        return may(self.call, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id)

    @property
    def client(self) -> int:
        """Identifies this client's connection."""
        return id(self.call.on_close)

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """More batches follow in later turns of the loop: do not answer when all so far are committed."""
        self._is_gathering = True
        try:
            yield
        finally:
            self._is_gathering = False

    @property
    def is_complete(self) -> bool:
        return not self._waiting

    def begin_waiting(self) -> None:
        """The client's timeout."""
        self._timer = asyncio.get_running_loop().call_later(self.request.timeout / 1000, self._time_is_up)

    def append(self, partition: Partition, batch: Batch, outcome: Outcome, ticket: Ticket | None = None) -> None:
        """Append and fill the outcome; with acks=all it waits for the commit."""
        acks_all = self.request.acks == ACKS_ALL
        appended = partition.append(batch, acks_all=acks_all, ticket=ticket)
        outcome.base_offset = appended.base_offset
        outcome.log_append_time = appended.log_append_time
        outcome.log_start_offset = appended.start_offset
        if (acks_all or appended.must_flush) and partition.high_watermark <= appended.last_offset:
            partition.when_committed(appended.last_offset, lambda code: self._settle(outcome, code))
            self._wait_for(outcome)

    async def append_prepared(
        self,
        partition: Partition,
        batch: Batch,
        outcome: Outcome,
        *,
        ticket: Ticket | None = None,
        first: Callable[[], Awaitable[None]] | None = None,
        tried: bool = False,
    ) -> None:
        """Append what `first` allows, after it is opened. To be run as a task in a line; the outcome waits for it."""
        try:
            if first is not None:
                await first()
            validation = self.replicas.validation
            batch = await validation.prepared(batch, partition.log.settings, partition, client=self.client, tried=tried)
            self.append(partition, batch, outcome, ticket)
        except KafkaError as error:
            self.refuse(outcome, error, partition.topic)
        except Exception:  # a bug must not leave the client without an answer
            log.exception("appending a batch to %s failed", partition)
            self.refuse(outcome, KafkaError(Code.unknown_server_error), partition.topic)
        self._settle(outcome, outcome.error_code)

    def wait(self, batch: Batch, outcome: Outcome) -> None:
        """For `append_prepared`."""
        batch.data = bytes(batch.data)  # the frame's buffer is reused meanwhile
        self.call.kept_bytes += len(batch.data)
        self._wait_for(outcome)

    def refuse(self, outcome: Outcome, error: KafkaError, name: str | bytes) -> None:
        outcome.error_code = error.code
        outcome.message = error.message
        outcome.record_errors = getattr(error, "record_errors", ())
        if error.code in LOGGED:
            client = f"{self.call.client.host} ({self.call.client_id})"
            place = f"{name if isinstance(name, str) else name.hex()}-{outcome.index}"
            refused.warning("a batch for %s from %s is refused: %s", place, client, error)
        if error.code == Code.not_leader_or_follower:
            outcome.leader = self.replicas.leader_of(name, outcome.index)

    def _wait_for(self, outcome: Outcome) -> None:
        _, times = self._waiting.get(id(outcome), (outcome, 0))
        self._waiting[id(outcome)] = (outcome, times + 1)

    def _settle(self, outcome: Outcome, code: int) -> None:
        """An outcome that waits for its append and for the commit is done when both have settled it."""
        _, times = self._waiting.pop(id(outcome), (outcome, 0))
        if not times:
            return
        if times > 1:
            self._waiting[id(outcome)] = (outcome, times - 1)
        if code:
            outcome.error_code, outcome.base_offset = code, -1
        if not self._waiting and not self._is_gathering:
            self.finish()

    def _time_is_up(self) -> None:
        for outcome, _ in self._waiting.values():
            outcome.error_code, outcome.base_offset = Code.request_timed_out, -1
        self.finish()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def make(self) -> Answer:
        throttle_ms = _charge(self.call) if self.call.allowance is not None else 0
        if self.request.acks != 0:
            return self.call.frame(encode(self.call.version, self.topics, throttle_ms=throttle_ms))
        for name, outcomes in self.topics:
            for outcome in outcomes:
                if outcome.error_code:  # without an answer, a closed connection is the only sign of failure
                    raise Malformed(f"produce with acks=0 to {name!r}-{outcome.index} failed: {outcome.message}")
        return None


def _charge(call: Call) -> int:
    meter = call.allowance.produce if call.allowance is not None else None
    return call.settle(0 if meter is None else meter.charge(call.request_bytes))
