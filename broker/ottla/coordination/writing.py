"""Appends records to the log of an internal topic: at once, or gathered into one batch per turn of the loop."""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ottla.coordination.core.records import Record
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.storage.core.verification import Ticket
from ottla.wire import batch as batches
from ottla.wire.assembly import assemble
from ottla.wire.batch import TRANSACTIONAL_BIT
from ottla.wire.compression import compress
from ottla.wire.varints import put

__all__ = ["Gathered", "WriteRules", "Writer", "answer_code"]

NO_PRODUCER = (-1, -1)
GATHERED_BYTES_MAX = 256 * 1024
ANSWERS = {
    Code.unknown_topic_or_partition: Code.coordinator_not_available,
    Code.not_enough_replicas: Code.coordinator_not_available,
    Code.not_enough_replicas_after_append: Code.coordinator_not_available,
    Code.request_timed_out: Code.coordinator_not_available,
    Code.not_leader_or_follower: Code.not_coordinator,
    Code.kafka_storage_error: Code.not_coordinator,
    Code.message_too_large: Code.unknown_server_error,
    Code.record_list_too_large: Code.unknown_server_error,
}


def answer_code(code: Code) -> Code:
    """The code that a client gets when a write to the coordinator's topic failed with this one."""
    return ANSWERS.get(code, code)


class WriteRules(NamedTuple):
    codec: int = 0
    commit_s_max: float = 5.0  # how long answers wait for the replicas


class Gathered(Protocol):
    """A write that may share a batch with others of the same turn of the loop."""

    def appended(self, last_offset: int) -> None:
        """The records are appended: apply them. They are committed or lost with everything up to this offset."""

    def ended(self, code: Code) -> None:
        """Answer with this code: NONE when committed, otherwise refused, timed out, or no longer led here."""


class Writer:
    """`when_committed` is the runner's: it calls back once for an offset."""

    def __init__(
        self,
        partition: Partition,
        *,
        clock: Clock,
        codec: int,
        when_committed: Callable[[int, Callable[[Code], None]], None],
    ) -> None:
        self._partition = partition
        self._clock = clock
        self._codec = codec
        self._when_committed = when_committed
        self._body = bytearray()
        self._count = 0
        self._gathered: list[Gathered] = []

    def append(self, records: Sequence[Record]) -> int:
        """Append all or none, now; returns the log's last offset. KafkaError, in a coordinator's code, when refused."""
        self.flush()
        body = bytearray()
        for delta, (key, value) in enumerate(records):
            put_record(body, delta, key, value)
        return self._append(body, len(records))

    def gather(self, records: Sequence[Record], write: Gathered) -> None:
        """Append before the next turn of the loop, with all other records of this turn. `records` is not empty."""
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self.flush)
        elif len(self._body) > GATHERED_BYTES_MAX:
            self.flush()
        body, delta = self._body, self._count
        for key, value in records:
            put_record(body, delta, key, value)
            delta += 1
        self._count = delta
        self._gathered.append(write)

    def flush(self) -> None:
        if not self._gathered:
            return
        body, count, gathered = self._body, self._count, self._gathered
        self._body, self._count, self._gathered = bytearray(), 0, []
        try:
            last_offset = self._append(body, count)
        except KafkaError as error:
            for write in gathered:
                write.ended(error.code)
            return
        for write in gathered:
            write.appended(last_offset)
        self._when_committed(last_offset, lambda code: _end_all(gathered, code))

    def append_in_transaction(self, records: Sequence[Record], session: tuple[int, int], ticket: Ticket | None) -> int:
        """The same for a producer's id and epoch; the first append of its transaction needs `ticket`."""
        self.flush()
        body = bytearray()
        for delta, (key, value) in enumerate(records):
            put_record(body, delta, key, value)
        return self._append(body, len(records), session=session, ticket=ticket)

    def _append(
        self,
        body: bytearray,
        count: int,
        *,
        session: tuple[int, int] | None = None,
        ticket: Ticket | None = None,
    ) -> int:
        now_ms, codec = self._clock.wall_ms(), self._codec
        producer_id, producer_epoch = session or NO_PRODUCER
        data = assemble(
            compress(codec, body, None),
            base_offset=0,
            leader_epoch=-1,
            attributes=codec if session is None else codec | TRANSACTIONAL_BIT,
            last_offset_delta=count - 1,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=-1,
            count=count,
        )
        try:
            batch = batches.parse(data)
            return self._partition.append(batch, acks_all=True, from_client=False, ticket=ticket).last_offset
        except KafkaError as error:
            raise KafkaError(answer_code(error.code), error.message) from error


def _end_all(gathered: Sequence[Gathered], code: Code) -> None:
    for write in gathered:
        write.ended(code)


def _varint(value: int) -> bytes:
    out = bytearray()
    put(out, value)
    return bytes(out)


TABLED = 4096
VARINTS = [_varint(value) for value in range(TABLED)]


def put_record(out: bytearray, delta: int, key: bytes, value: bytes | None) -> None:
    """A record without headers, as old as its batch. Most numbers are small: those come from a table."""
    key_size, value_size = len(key), -1 if value is None else len(value)
    if key_size < TABLED > value_size >= 0 and delta < TABLED:
        parts = (b"\0\0", VARINTS[delta], VARINTS[key_size], key, VARINTS[value_size], value or b"", b"\0")
    else:
        parts = (b"\0\0", _varint(delta), _varint(key_size), key, _varint(value_size), value or b"", b"\0")
    body = b"".join(parts)  # attributes and timestamp come first, the number of headers last
    size = len(body)
    out += VARINTS[size] if size < TABLED else _varint(size)
    out += body
