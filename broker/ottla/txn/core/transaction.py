"""One transactional id as the log has it, and its change by each event. Pure; values are immutable.

Times are wall-clock milliseconds, because they outlive the coordinator.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ottla.txn.core.states import NEXT, SETTLED, Event, State

__all__ = ["EPOCH_LAST", "EPOCH_MAX", "NONE", "PER_TRANSACTION_EPOCHS", "TopicPartition", "Transaction"]

NONE = -1
EPOCH_MAX = 2**15 - 1
EPOCH_LAST = EPOCH_MAX - 1  # of a producer: one more epoch must remain to fence it
PER_TRANSACTION_EPOCHS = 2  # transaction.version of KIP-890

TopicPartition: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """`last_epoch` is the previous epoch while a retry may still use it, otherwise -1.

    `next_producer_id` replaces `producer_id` when the transaction is complete, if its epochs are used up.
    `client_version` is the transaction.version of the last end.
    """

    id: str
    producer_id: int
    timeout_ms: int
    updated_ms: int
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    epoch: int = NONE
    last_epoch: int = NONE
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NONE
    client_version: int = 0

    @property
    def epochs_used_up(self) -> bool:
        return self.epoch >= EPOCH_LAST

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= PER_TRANSACTION_EPOCHS

    def after(self, event: Event) -> State:
        return NEXT[self.state, event]

    def initiated(
        self, *, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        """After InitProducerId, with this id and epoch."""
        return Transaction(
            id=self.id,
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            epoch=epoch,
            last_epoch=last_epoch,
            timeout_ms=timeout_ms,
            state=self.after(Event.INIT),
            updated_ms=now_ms,
        )

    def added(self, partitions: Iterable[TopicPartition], *, now_ms: int) -> "Transaction":
        return replace(
            self,
            state=self.after(Event.ADD),
            partitions=self.partitions.union(partitions),
            started_ms=now_ms if self.state in SETTLED else self.started_ms,
            updated_ms=now_ms,
            client_version=0,
        )

    def ending(self, event: Event, *, version: int, next_producer_id: int, now_ms: int) -> "Transaction":
        """After the decision to end it; with epochs per transaction this also sets the next epoch."""
        bumps = version >= PER_TRANSACTION_EPOCHS
        assert not bumps or self.epoch < EPOCH_MAX, self
        return replace(
            self,
            state=self.after(event),
            next_producer_id=next_producer_id,
            epoch=self.epoch + 1 if bumps else self.epoch,
            last_epoch=self.epoch if bumps else self.last_epoch,
            started_ms=now_ms if event is Event.ABORT_NOTHING else self.started_ms,
            updated_ms=now_ms,
            client_version=version,
        )

    def fenced(self, *, version: int, next_producer_id: int, now_ms: int) -> "Transaction":
        """After the decision to abort it in the place of its producer, whose epoch is fenced."""
        fencing = replace(self, state=self.after(Event.FENCE))
        if version < PER_TRANSACTION_EPOCHS:
            fencing = replace(fencing, epoch=self.epoch + 1, last_epoch=NONE)
        return fencing.ending(Event.ABORT, version=version, next_producer_id=next_producer_id, now_ms=now_ms)

    def marked(self, *, now_ms: int) -> "Transaction":
        """Every partition has its marker."""
        rotates = self.next_producer_id != NONE
        return replace(
            self,
            state=self.after(Event.MARKED),
            partitions=frozenset(),
            updated_ms=now_ms,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            previous_producer_id=self.producer_id if rotates else self.previous_producer_id,
            next_producer_id=NONE,
            epoch=0 if rotates else self.epoch,
            last_epoch=self.epoch if rotates else self.last_epoch,
        )

    def is_timed_out(self, now_ms: int) -> bool:
        return self.state is State.ONGOING and now_ms > self.started_ms + self.timeout_ms

    def is_expired(self, now_ms: int, expiration_ms: int) -> bool:
        return (self.state, Event.EXPIRE) in NEXT and now_ms >= self.updated_ms + expiration_ms
