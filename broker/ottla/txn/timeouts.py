"""Transactions that exceed their transaction.timeout.ms are aborted, in the place of their producer."""

import logging

from ottla.errors import Code, KafkaError
from ottla.txn.core import deciding
from ottla.txn.core.deciding import Decision
from ottla.txn.core.transaction import Transaction
from ottla.txn.shard import TransactionShard

__all__ = ["abort_timed_out"]

log = logging.getLogger("ottla.txn")


async def abort_timed_out(shard: TransactionShard, *, version: int, now_ms: int) -> None:
    """`version` is the finalized transaction.version."""
    for transaction in shard.timed_out(now_ms):
        await _abort(shard, transaction, version=version, now_ms=now_ms)


async def _abort(shard: TransactionShard, timed_out: Transaction, *, version: int, now_ms: int) -> None:
    """Nothing happens if its producer was faster."""

    def ask(transaction: Transaction | None, new_producer_id: int) -> Decision:
        if transaction is not timed_out:
            return Decision(Code.none)
        return deciding.fence(timed_out, version=version, new_producer_id=new_producer_id, now_ms=now_ms)

    text = f"transaction {timed_out.id} of producer {timed_out.producer_id}"
    try:
        decision = await shard.decide(timed_out.id, ask, patience_s=0)
    except KafkaError as error:
        log.warning("%s exceeded its time-out but cannot be aborted now: %s", text, error)
        return
    if decision.write is not None:
        log.info("%s exceeded its time-out of %d ms; it is aborted", text, timed_out.timeout_ms)
