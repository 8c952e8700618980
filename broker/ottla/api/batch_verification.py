"""Verifies transactional batches at their coordinator before they are appended (KIP-890)."""

from ottla.api.requests import ProduceRequest
from ottla.errors import Code, KafkaError
from ottla.ports import Clock
from ottla.replica.partition import Partition
from ottla.replica.settings import LiveSettings
from ottla.storage.core.verification import Ticket
from ottla.txn.verifying import Asked, Verifier
from ottla.wire.batch import Batch

__all__ = ["BatchVerification", "must_verify"]

ABORTABLE_SINCE, ADDS_SINCE = 11, 12


def must_verify(partition: Partition, batch: Batch, request: ProduceRequest) -> bool:
    """Whether the coordinator must be asked first; later batches of the producer wait for it."""
    if not request.transactional_id:
        raise KafkaError(Code.transactional_id_authorization_failed, "Transactional records need a transactional id")
    producer_id = batch.producer_id
    known = partition.log.producers.in_transaction(producer_id, batch.producer_epoch)
    return not known or producer_id in partition.pending_batches.verifying


class BatchVerification:
    def __init__(self, verifier: Verifier, settings: LiveSettings, clock: Clock) -> None:
        self._verifier = verifier
        self._settings = settings
        self._clock = clock

    def begin(self, partition: Partition, batch: Batch, *, version: int) -> Ticket:
        """`version` is that of the produce request."""
        verifications = partition.log.producers.verifications
        return verifications.begin_for(batch, adds_partitions=version >= ADDS_SINCE, now_ms=self._clock.wall_ms())

    async def verified(self, partition: Partition, batch: Batch, request: ProduceRequest, *, version: int) -> None:
        """KafkaError unless the partition is in the batch's transaction."""
        if not partition.log.producers.in_transaction(batch.producer_id, batch.producer_epoch):
            await self._ask_coordinator(partition, batch, request, version=version)

    async def _ask_coordinator(
        self, partition: Partition, batch: Batch, request: ProduceRequest, *, version: int
    ) -> None:
        adds = version >= ADDS_SINCE
        if not adds and not self._settings.broker("transaction.partition.verification.enable"):
            return
        assert request.transactional_id is not None  # as must_verify has checked
        await self._verifier.verify(
            Asked(request.transactional_id, batch.producer_id, batch.producer_epoch, adds),
            (partition.topic, partition.index),
            knows_abortable=version >= ABORTABLE_SINCE,
        )
