"""Transactional batches whose transaction is being verified at the coordinator (KIP-890). Pure.

The first batch of a transaction in a partition may be appended only if the coordinator has the partition in the
transaction. During the request the transaction may end; then the batch must not be appended after the marker, where no
marker would ever end it. So each request holds a ticket, which any batch of the producer and any marker that may end
this transaction invalidates.
"""

from ottla.errors import Code, KafkaError
from ottla.wire.batch import Batch

__all__ = ["Ticket", "Verifications"]


class Ticket:
    """For all waiting batches of one producer. `sequence` is the lowest of their base sequences."""

    __slots__ = ("adds_partitions", "begun_ms", "epoch", "producer_id", "sequence")

    def __init__(self, producer_id: int, epoch: int, sequence: int, *, adds_partitions: bool, now_ms: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.sequence = sequence
        self.adds_partitions = adds_partitions  # the producer bumps its epoch per transaction, so sequences start at 0
        self.begun_ms = now_ms


class Verifications:
    """The tickets of one partition, at most one per producer."""

    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._tickets: dict[int, Ticket] = {}

    def begin_for(self, batch: Batch, *, adds_partitions: bool, now_ms: int) -> Ticket:
        return self.begin(
            producer_id=batch.producer_id,
            epoch=batch.producer_epoch,
            sequence=batch.base_sequence,
            adds_partitions=adds_partitions,
            now_ms=now_ms,
        )

    def begin(self, *, producer_id: int, epoch: int, sequence: int, adds_partitions: bool, now_ms: int) -> Ticket:
        ticket = self._tickets.get(producer_id)
        if ticket is None or ticket.epoch < epoch:
            ticket = Ticket(producer_id, epoch, sequence, adds_partitions=adds_partitions, now_ms=now_ms)
            self._tickets[producer_id] = ticket
        elif ticket.epoch == epoch:
            ticket.sequence = min(ticket.sequence, sequence)
        return ticket

    def require(self, batch: Batch, ticket: Ticket | None, *, producer_is_known: bool) -> None:
        """Refuse a first batch whose transaction was not verified or has ended meanwhile, or that is out of order."""
        if ticket is None or self._tickets.get(batch.producer_id) is not ticket:
            raise KafkaError(Code.invalid_txn_state, "Record was not part of an ongoing transaction")
        expected = 0 if ticket.adds_partitions and not producer_is_known else ticket.sequence
        if batch.base_sequence > expected:
            raise KafkaError(
                Code.out_of_order_sequence_number,
                f"Out of order sequence number for producer {batch.producer_id} in partition {self._partition}: "
                f"{batch.base_sequence} (incoming seq. number), {expected} (earliest seen sequence)",
            )

    def noted(self, batch: Batch) -> None:
        """The batch was appended: its ticket is used up or invalid."""
        ticket = self._tickets.get(batch.producer_id) if self._tickets else None
        if ticket is not None and not (batch.is_control and _is_of_an_earlier_one(batch, ticket)):
            del self._tickets[batch.producer_id]

    def expire(self, now_ms: int, expiry_ms: int) -> None:
        for producer_id, ticket in list(self._tickets.items()):
            if now_ms - ticket.begun_ms >= expiry_ms:
                del self._tickets[producer_id]


def _is_of_an_earlier_one(marker: Batch, ticket: Ticket) -> bool:
    """With an epoch per transaction, a marker has a higher epoch than its records: that of the next transaction."""
    return ticket.adds_partitions and marker.producer_epoch <= ticket.epoch
