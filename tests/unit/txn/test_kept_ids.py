"""The memory of transactional ids is counted as they come and go."""

from types import SimpleNamespace
from typing import Any, cast

from ottla.coordination.writing import WriteRules
from ottla.system import RealClock
from ottla.txn.core.records import key_of, value_of
from ottla.txn.core.transaction import Transaction
from ottla.txn.shard import TransactionShard, kept_bytes_of


def test_ids_are_counted_once_and_until_they_are_removed() -> None:
    unused = cast(Any, None)
    partition = cast(Any, SimpleNamespace(topic="__transaction_state", index=0, leader_epoch=1))
    shard = TransactionShard(
        partition, clock=RealClock(), delivery=unused, new_producer_id=unused, write_rules=WriteRules()
    )
    ids = ["a", "ä" * 1000]
    for each in [*ids, *ids]:
        shard.replay(memoryview(key_of(each)), memoryview(value_of(transaction(each))))
    assert shard.kept_bytes == sum(map(kept_bytes_of, ids)) > 2000
    for each in [*ids, "unknown"]:
        shard.replay(memoryview(key_of(each)), None)
    assert shard.kept_bytes == 0


def transaction(transactional_id: str) -> Transaction:
    return Transaction(id=transactional_id, producer_id=1, epoch=0, timeout_ms=1000, updated_ms=1)
