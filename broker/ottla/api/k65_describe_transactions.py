"""DescribeTransactions: the state of transactional ids (KIP-664)."""

from typing import Any

from ottla.api.authorizing import require, sees
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeTransactionsRequest
from ottla.api.slices import encoded_or_refused
from ottla.errors import Code, KafkaError
from ottla.security.core.access import Operation, Resource
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.core.transaction import Transaction


@api(key=65, versions=(0, 0))
async def describe_transactions(
    request: DescribeTransactionsRequest, call: Call, transactions: TransactionCoordinator
) -> Answer:
    """In slices, however small the request: a transaction may have very many partitions."""

    async def line(transactional_id: str) -> dict[str, Any]:
        require(call, Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, transactional_id)
        return await _line(transactional_id, call, transactions)

    ids = request.transactional_ids
    return call.reply(
        transaction_states=await encoded_or_refused(call, ("transaction_states",), ids, line, refused=_refused, key=str)
    )


async def _line(transactional_id: str, call: Call, transactions: TransactionCoordinator) -> dict[str, Any]:
    shard = transactions.shard_of(transactional_id)
    found = shard.transactions.get(transactional_id)
    await shard.until_id_committed(transactional_id)
    if found is None:
        raise KafkaError(Code.transactional_id_not_found)
    return {"error_code": Code.none, **_described(found, call)}


def _refused(transactional_id: str, error: KafkaError) -> dict[str, Any]:
    return {"transactional_id": transactional_id, "error_code": error.code, **_NOTHING}


_NOTHING: dict[str, Any] = {
    "transaction_state": "",
    "transaction_timeout": 0,
    "transaction_start_time": 0,
    "producer_id": 0,
    "producer_epoch": 0,
    "topics": [],
}


def _described(transaction: Transaction, call: Call) -> dict[str, Any]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(transaction.partitions):
        by_topic.setdefault(topic, []).append(index)
    return {
        "transactional_id": transaction.id,
        "transaction_state": transaction.state.label,
        "transaction_timeout": transaction.timeout_ms,
        "transaction_start_time": transaction.started_ms,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.epoch,
        "topics": [
            {"topic": topic, "partitions": indexes}
            for topic, indexes in by_topic.items()
            if sees(call, Operation.DESCRIBE, Resource.TOPIC, topic)
        ],
    }
