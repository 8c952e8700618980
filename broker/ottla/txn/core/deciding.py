"""The transaction coordinator's decisions, by Kafka 4.1's rules. Pure.

A function takes the current transaction, or None, and returns a `Decision`. `write` is appended before the answer is
sent; a Prepare state requires markers once it is committed. `NEEDS_PRODUCER_ID`: the caller must repeat the call with a
new producer id.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.errors import Code
from ottla.txn.core.states import ENDING, Event, State
from ottla.txn.core.transaction import EPOCH_LAST, NONE, PER_TRANSACTION_EPOCHS, TopicPartition, Transaction

__all__ = ["NEEDS_PRODUCER_ID", "Decision", "ProducerSession", "add", "end", "fence", "initiate", "verify"]


class Decision(NamedTuple):
    code: Code
    producer_id: int = NONE
    epoch: int = NONE
    write: Transaction | None = None

    @property
    def may_pass_soon(self) -> bool:
        """Refused only because the previous transaction has not ended yet."""
        return self.code is Code.concurrent_transactions and self.write is None


class ProducerSession(NamedTuple):
    """The producer id and epoch in a request."""

    producer_id: int
    epoch: int


NEEDS_PRODUCER_ID = Decision(Code.none, producer_id=-2)


def _refused(code: Code) -> Decision:
    return Decision(code)


def _accepted(transaction: Transaction, *, write: bool = True) -> Decision:
    """The decision carries the producer's id and epoch from now on."""
    rotates = transaction.next_producer_id != NONE
    session = (transaction.next_producer_id, 0) if rotates else (transaction.producer_id, transaction.epoch)
    return Decision(Code.none, *session, transaction if write else None)


# InitProducerId


def initiate(
    transaction: Transaction | None,
    *,
    transactional_id: str,
    timeout_ms: int,
    expected: ProducerSession | None,
    new_producer_id: int,
    version: int,
    now_ms: int,
) -> Decision:
    """InitProducerId. `expected` is the producer's previous id and epoch if it recovers from an error (KIP-360)."""
    if transaction is None:
        if new_producer_id == NONE:
            return NEEDS_PRODUCER_ID
        made = Transaction(id=transactional_id, producer_id=new_producer_id, timeout_ms=timeout_ms, updated_ms=now_ms)
        return _accepted(_begun(made, epoch=0, last_epoch=NONE, timeout_ms=timeout_ms, now_ms=now_ms))
    if expected is not None and not _may_continue(transaction, expected):
        return _refused(Code.producer_fenced)
    if transaction.state in ENDING:
        return _refused(Code.concurrent_transactions)
    if transaction.state is State.ONGOING:
        return _fence_first(transaction, version=version, new_producer_id=new_producer_id, now_ms=now_ms)
    if transaction.epochs_used_up and (expected is None or expected.epoch == transaction.epoch):
        return _rotate(transaction, expected, new_producer_id=new_producer_id, timeout_ms=timeout_ms, now_ms=now_ms)
    return _bump(transaction, expected, timeout_ms=timeout_ms, now_ms=now_ms)


def _begun(transaction: Transaction, *, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
    return transaction.initiated(
        producer_id=transaction.producer_id, epoch=epoch, last_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms
    )


def _may_continue(transaction: Transaction, expected: ProducerSession) -> bool:
    """The epoch is checked later. The previous id is accepted after a rotation: the answer may have been lost."""
    return expected.producer_id == transaction.producer_id or (
        expected.producer_id == transaction.previous_producer_id and expected.epoch >= EPOCH_LAST
    )


def _fence_first(transaction: Transaction, *, version: int, new_producer_id: int, now_ms: int) -> Decision:
    """Abort the open transaction; the producer retries. No producer ever gets the epoch used for the abort."""
    decision = fence(transaction, version=version, new_producer_id=new_producer_id, now_ms=now_ms)
    return decision if decision is NEEDS_PRODUCER_ID else Decision(Code.concurrent_transactions, write=decision.write)


def _rotate(
    transaction: Transaction, expected: ProducerSession | None, *, new_producer_id: int, timeout_ms: int, now_ms: int
) -> Decision:
    if new_producer_id == NONE:
        return NEEDS_PRODUCER_ID
    last_epoch = transaction.epoch if expected is not None else NONE
    return _accepted(
        transaction.initiated(
            producer_id=new_producer_id, epoch=0, last_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms
        )
    )


def _bump(transaction: Transaction, expected: ProducerSession | None, *, timeout_ms: int, now_ms: int) -> Decision:
    epoch, last_epoch = transaction.epoch + 1, NONE
    if expected is not None:
        if expected.epoch == transaction.epoch:
            last_epoch = transaction.epoch
        elif expected.epoch == transaction.last_epoch:  # a retry: it was bumped, and the answer was lost
            epoch, last_epoch = transaction.epoch, transaction.last_epoch
        else:
            return _refused(Code.producer_fenced)
    return _accepted(_begun(transaction, epoch=epoch, last_epoch=last_epoch, timeout_ms=timeout_ms, now_ms=now_ms))


# AddPartitionsToTxn, AddOffsetsToTxn, verification by partition leaders


def _mismatch(transaction: Transaction | None, session: ProducerSession) -> Code:
    if transaction is None or transaction.producer_id != session.producer_id:
        return Code.invalid_producer_id_mapping
    return Code.none if transaction.epoch == session.epoch else Code.producer_fenced


def add(
    transaction: Transaction | None,
    session: ProducerSession,
    partitions: Iterable[TopicPartition],
    *,
    now_ms: int,
) -> Decision:
    """Add partitions; the first one starts the transaction."""
    if transaction is not None and transaction.state in ENDING:
        return _refused(_ending_refusal(transaction, session))
    if (code := _mismatch(transaction, session)) is not Code.none:
        return _refused(code)
    assert transaction is not None
    wanted = frozenset(partitions)
    if transaction.state is State.ONGOING and wanted <= transaction.partitions:
        return _accepted(transaction, write=False)
    return _accepted(transaction.added(wanted, now_ms=now_ms))


def _ending_refusal(transaction: Transaction, session: ProducerSession) -> Code:
    """The code while the transaction is ending; also for a producer that has its next id already."""
    if session.producer_id == transaction.next_producer_id != NONE:
        return Code.concurrent_transactions
    code = _mismatch(transaction, session)
    return Code.concurrent_transactions if code is Code.none else code


def verify(
    transaction: Transaction | None, session: ProducerSession, partitions: Iterable[TopicPartition]
) -> tuple[Code, dict[TopicPartition, Code]]:
    """Whether these partitions are in the open transaction: a code for all, or one for each."""
    if (code := _mismatch(transaction, session)) is not Code.none:
        return code, {}
    assert transaction is not None
    if transaction.state in ENDING:
        return Code.concurrent_transactions, {}
    known = transaction.partitions
    return Code.none, {one: Code.none if one in known else Code.transaction_abortable for one in partitions}


# EndTxn, time-outs


def end(
    transaction: Transaction | None,
    session: ProducerSession,
    *,
    commit: bool,
    version: int,
    new_producer_id: int,
    now_ms: int,
) -> Decision:
    if transaction is None:
        return _refused(Code.invalid_producer_id_mapping)
    if version < PER_TRANSACTION_EPOCHS:
        return _end_same_epoch(transaction, session, commit=commit, version=version, now_ms=now_ms)
    return _end_next_epoch(
        transaction, session, commit=commit, version=version, new_producer_id=new_producer_id, now_ms=now_ms
    )


def _end_same_epoch(
    transaction: Transaction, session: ProducerSession, *, commit: bool, version: int, now_ms: int
) -> Decision:
    """The old flow: a retry cannot be told from ending an empty transaction, and gets the same answer."""
    if (code := _mismatch(transaction, session)) is not Code.none:
        return _refused(code)
    if transaction.state is State.ONGOING:
        event = Event.COMMIT if commit else Event.ABORT
        return _accepted(transaction.ending(event, version=version, next_producer_id=NONE, now_ms=now_ms))
    return _answer_retry(transaction, commit=commit)


def _answer_retry(transaction: Transaction, *, commit: bool) -> Decision:
    preparing, complete = (
        (State.PREPARE_COMMIT, State.COMPLETE_COMMIT) if commit else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
    )
    if transaction.state is complete:
        return _accepted(transaction, write=False)
    return _refused(Code.concurrent_transactions if transaction.state is preparing else Code.invalid_txn_state)


def _end_next_epoch(
    transaction: Transaction,
    session: ProducerSession,
    *,
    commit: bool,
    version: int,
    new_producer_id: int,
    now_ms: int,
) -> Decision:
    """KIP-890: the epoch identifies the transaction, so a retry has the previous epoch.

    While markers are in flight all requests wait, as in Kafka: the producer has its next epoch (or id) already and may
    end its next transaction before the last one is complete.
    """
    if transaction.state in ENDING:
        return _refused(Code.concurrent_transactions)
    same_id = session.producer_id == transaction.producer_id
    former = (transaction.previous_producer_id, EPOCH_LAST)
    rotated = not same_id and session == former and transaction.epoch == 0 and transaction.bumps_epochs
    is_retry = rotated or (same_id and transaction.bumps_epochs and session.epoch + 1 == transaction.epoch)
    if not same_id and not rotated:
        return _refused(Code.invalid_producer_id_mapping)
    if is_retry and transaction.state not in (State.ONGOING, State.EMPTY):
        return _answer_retry(transaction, commit=commit)
    if session.epoch != transaction.epoch:
        return _refused(Code.producer_fenced)
    if transaction.state is State.ONGOING:
        event = Event.COMMIT if commit else Event.ABORT
    elif not commit:
        event = Event.ABORT_NOTHING
    else:
        return _refused(Code.invalid_txn_state)
    if transaction.epochs_used_up and new_producer_id == NONE:
        return NEEDS_PRODUCER_ID
    next_id = new_producer_id if transaction.epochs_used_up else NONE
    return _accepted(transaction.ending(event, version=version, next_producer_id=next_id, now_ms=now_ms))


def fence(transaction: Transaction, *, version: int, new_producer_id: int, now_ms: int) -> Decision:
    """Abort an open transaction in the place of its producer."""
    needs_id = version >= PER_TRANSACTION_EPOCHS and transaction.epochs_used_up
    if needs_id and new_producer_id == NONE:
        return NEEDS_PRODUCER_ID
    next_id = new_producer_id if needs_id else NONE
    return _accepted(transaction.fenced(version=version, next_producer_id=next_id, now_ms=now_ms))
