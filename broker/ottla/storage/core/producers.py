"""The state of a partition's idempotent and transactional producers. Pure.

A batch is checked (`check`), then written, then recorded (`update`), so that a failed write changes nothing here.
Batches that were checked before, on the leader or before a restart, are only recorded.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ottla.errors import Code, KafkaError
from ottla.storage.core.aborted import AbortedTransaction
from ottla.storage.core.verification import Ticket, Verifications
from ottla.wire.batch import CONTROL_BIT, SEQUENCE_MAX, TRANSACTIONAL_BIT, Batch
from ottla.wire.markers import Marker
from ottla.wire.records import iterate

__all__ = ["CompletedTransaction", "EndMarker", "Producer", "Producers", "Written", "end_marker"]

NONE = -1
EARLIER_MAX = 4  # remembered batches of a producer besides its last one
EXPIRED_PER_SLICE_MAX = 2000


class Written(NamedTuple):
    """One of a producer's last batches."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class EndMarker(NamedTuple):
    """The record of a control batch that ends a transaction."""

    commit: bool
    coordinator_epoch: int


class CompletedTransaction(NamedTuple):
    """A transaction that an end marker committed or aborted, for the transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool
    last_stable_offset: int

    def for_index(self) -> AbortedTransaction:
        return AbortedTransaction(self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset)


class Producer:
    """One producer id. `transaction_start` is the first offset of its open transaction, or -1.

    There may be very many: most write a single batch, so there is only space for one until the second.
    """

    __slots__ = (
        "coordinator_epoch",
        "earlier",
        "epoch",
        "frozen",
        "id",
        "last",
        "last_timestamp",
        "transaction_start",
    )

    def __init__(
        self,
        producer_id: int,
        *,
        epoch: int = NONE,
        coordinator_epoch: int = NONE,
        last_timestamp: int = NONE,
        transaction_start: int = NONE,
        written: Iterable[Written] = (),
    ) -> None:
        self.id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_start = transaction_start
        self.frozen = 0  # the value of `Producers._frozen` when this object was made
        self.last: Written | None = None
        self.earlier: deque[Written] | None = None
        for one in written:
            self.add(one)

    @property
    def written(self) -> tuple[Written, ...]:
        """The last batches, oldest first."""
        return (*(self.earlier or ()), self.last) if self.last is not None else ()

    @property
    def last_sequence(self) -> int:
        return self.last.last_sequence if self.last is not None else NONE

    def add(self, written: Written) -> None:
        if self.last is not None:
            if self.earlier is None:
                self.earlier = deque(maxlen=EARLIER_MAX)
            self.earlier.append(self.last)
        self.last = written

    def become(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.last = self.earlier = None

    def copy(self) -> "Producer":
        return Producer(
            self.id,
            epoch=self.epoch,
            coordinator_epoch=self.coordinator_epoch,
            last_timestamp=self.last_timestamp,
            transaction_start=self.transaction_start,
            written=self.written,
        )


@dataclass(slots=True)
class _Ended:
    """A completed transaction that stays unstable until its marker, at `last_offset`, is replicated."""

    first_offset: int
    last_offset: int


class Producers:
    """All producers of one partition. Invariant: `end_offset` is the end of the last batch recorded here."""

    def __init__(self, partition: str) -> None:
        self.partition = partition
        self.by_id: dict[int, Producer] = {}
        self.end_offset = 0
        self.verifications = Verifications(partition)
        self._open: dict[int, int] = {}  # first offset → producer id, ascending
        self._ended: list[_Ended] = []
        self._frozen = 0  # number of `freeze` calls

    def freeze(self) -> list[Producer]:
        """The current producers, for a thread to read: a producer that changes later is copied first."""
        self._frozen += 1
        return list(self.by_id.values())

    def check(self, batch: Batch, *, offset: int, from_client: bool) -> Written | None:
        """KafkaError if the batch does not continue its producer's sequence. A retry returns the earlier batch."""
        producer = self.by_id.get(batch.producer_id)
        if producer is None:
            return None
        epoch, sequence = batch.producer_epoch, batch.base_sequence
        if from_client and epoch == producer.epoch:
            written = producer.last
            if written is not None:
                last = written.last_sequence
                if sequence != last + 1 and (sequence != 0 or last != SEQUENCE_MAX):
                    return self._duplicate(producer, batch, offset)
            elif sequence != 0:
                raise self._out_of_order(batch, offset, NONE)
        elif epoch < producer.epoch:
            raise KafkaError(
                Code.invalid_producer_epoch,
                f"Epoch of producer {batch.producer_id} at offset {offset} in {self.partition} is {epoch}, which is "
                f"smaller than the last seen epoch {producer.epoch}",
            )
        elif from_client and sequence != 0 and producer.epoch != NONE:
            raise KafkaError(
                Code.out_of_order_sequence_number,
                f"Invalid sequence number for new epoch of producer {batch.producer_id} at offset {offset} in "
                f"partition {self.partition}: {epoch} (request epoch), {sequence} (seq. number), {producer.epoch} "
                "(current producer epoch)",
            )
        if producer.transaction_start >= 0 and not batch.is_transactional:
            raise KafkaError(
                Code.invalid_txn_state,
                f"Expected transactional write from producer {batch.producer_id} at offset {offset} in partition "
                f"{self.partition}",
            )
        return None

    def _duplicate(self, producer: Producer, batch: Batch, offset: int) -> Written:
        last_sequence = batch.last_sequence
        for written in producer.written:
            if written.first_sequence == batch.base_sequence and written.last_sequence == last_sequence:
                return written
        raise self._out_of_order(batch, offset, producer.last_sequence)

    def _out_of_order(self, batch: Batch, offset: int, last_sequence: int) -> KafkaError:
        return KafkaError(
            Code.out_of_order_sequence_number,
            f"Out of order sequence number for producer {batch.producer_id} at offset {offset} in partition "
            f"{self.partition}: {batch.base_sequence} (incoming seq. number), {last_sequence} "
            "(current end sequence number)",
        )

    def check_marker(self, batch: Batch, marker: EndMarker) -> None:
        """Refuse an end marker from a coordinator that has been replaced."""
        producer = self.by_id.get(batch.producer_id)
        if producer is not None and producer.coordinator_epoch > marker.coordinator_epoch:
            raise KafkaError(
                Code.transaction_coordinator_fenced,
                f"Invalid coordinator epoch for producerId {batch.producer_id} in partition {self.partition}: "
                f"{marker.coordinator_epoch} (zombie), {producer.coordinator_epoch} (current)",
            )

    def refuse_late(self, marker: Marker) -> None:
        """For markers whose epoch is above that of their transaction's records. If the open transaction has the
        marker's epoch or a later one, the marker belongs to an earlier transaction: refuse it."""
        producer = self.by_id.get(marker.producer_id)
        if producer is not None and producer.transaction_start >= 0 and producer.epoch >= marker.epoch:
            raise KafkaError(
                Code.invalid_producer_epoch,
                f"A marker of epoch {marker.epoch} for producer {marker.producer_id} in {self.partition} is late: "
                f"a transaction of epoch {producer.epoch} is open",
            )

    def update(self, batch: Batch, *, base_offset: int, timestamp: int) -> CompletedTransaction | None:
        """Record a batch that was appended at `base_offset`."""
        last_offset = base_offset + batch.last_offset_delta
        self.end_offset = last_offset + 1
        if batch.producer_id < 0:
            return None
        self.verifications.noted(batch)
        producer = self.by_id.get(batch.producer_id)
        if producer is None:
            producer = self.by_id[batch.producer_id] = Producer(batch.producer_id)
            producer.frozen = self._frozen
        elif producer.frozen != self._frozen:
            producer = self.by_id[batch.producer_id] = producer.copy()
            producer.frozen = self._frozen
        attributes = batch.attributes
        if attributes & CONTROL_BIT:
            return self._end(producer, batch, base_offset, timestamp)
        if batch.producer_epoch != producer.epoch:
            producer.become(batch.producer_epoch)
        producer.add(Written(batch.base_sequence, batch.last_sequence, base_offset, last_offset, timestamp))
        producer.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_BIT and producer.transaction_start < 0:
            producer.transaction_start = base_offset
            self._open[base_offset] = producer.id
        return None

    def _end(self, producer: Producer, batch: Batch, offset: int, timestamp: int) -> CompletedTransaction | None:
        marker = end_marker(batch)
        if marker is None:
            return None
        first, producer.transaction_start = producer.transaction_start, NONE
        producer.become(batch.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = timestamp
        if first < 0:
            return None
        self._open.pop(first, None)
        self._ended.append(_Ended(first, offset))
        stable = next(iter(self._open), offset + 1)
        return CompletedTransaction(producer.id, first, offset, not marker.commit, stable)

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether this epoch of the producer has an open transaction here."""
        producer = self.by_id.get(producer_id)
        return producer is not None and producer.transaction_start >= 0 and producer.epoch == epoch

    def require_verified(self, batch: Batch, ticket: Ticket | None) -> None:
        """Refuse a transactional batch unless its transaction is open here or the coordinator has verified it."""
        if not self.in_transaction(batch.producer_id, batch.producer_epoch):
            self.verifications.require(batch, ticket, producer_is_known=batch.producer_id in self.by_id)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Below it every transaction has ended, and its marker is replicated."""
        if not self._open and not self._ended:
            return high_watermark
        unstable = [ended.first_offset for ended in self._ended if ended.last_offset >= high_watermark]
        return min(next(iter(self._open), high_watermark), high_watermark, *unstable)

    def replicated_to(self, high_watermark: int) -> None:
        """Markers below it are on all replicas."""
        if self._ended:
            self._ended = [ended for ended in self._ended if ended.last_offset >= high_watermark]

    def expire(self, now_ms: int, expiry_ms: int) -> None:
        """Remove producers that have not written for `expiry_ms`, unless they have an open transaction."""
        for _ in self.expiring(now_ms, expiry_ms):
            pass

    def expiring(self, now_ms: int, expiry_ms: int) -> Iterator[None]:
        """The same in slices: between two slices batches may arrive, and all producers may be replaced."""
        self.verifications.expire(now_ms, expiry_ms)
        examined = list(self.by_id.values())
        for begin in range(0, len(examined), EXPIRED_PER_SLICE_MAX):
            if begin:
                yield
            for producer in examined[begin : begin + EXPIRED_PER_SLICE_MAX]:
                is_silent = producer.transaction_start < 0 and now_ms - producer.last_timestamp >= expiry_ms
                if is_silent and self.by_id.get(producer.id) is producer:
                    del self.by_id[producer.id]

    def advance_to(self, end_offset: int) -> None:
        """The log now ends here, and nothing since the last batch concerns producers."""
        self.end_offset = end_offset

    def reset(self, producers: list[Producer], *, end_offset: int) -> None:
        """Replace all producers by these, as of `end_offset`."""
        self.by_id = {producer.id: producer for producer in producers}
        started = ((producer.transaction_start, producer.id) for producer in producers)
        self._open = {first: producer_id for first, producer_id in sorted(started) if first >= 0}
        self._ended = []
        self.end_offset = end_offset

    def take_over(self, other: "Producers") -> None:
        """Take the producers of `other`, which were rebuilt from the log; verifications stay."""
        self.by_id, self._open, self._ended = other.by_id, other._open, other._ended
        self._frozen = other._frozen
        self.end_offset = other.end_offset


def end_marker(batch: Batch) -> EndMarker | None:
    """The end marker in a control batch; None if compaction emptied it or it is of another kind."""
    record = next(iter(iterate(batch)), None)
    if record is None or record.key is None or record.value is None or len(record.key) < 4 or len(record.value) < 6:
        return None
    kind = int.from_bytes(record.key[2:4], "big", signed=True)
    if kind not in (0, 1):
        return None
    return EndMarker(commit=kind == 1, coordinator_epoch=int.from_bytes(record.value[2:6], "big", signed=True))
