"""AddPartitionsToTxn: partitions join a producer's transaction, or are searched for in it.

v2 PRODUCER_FENCED · v3 flexible · v4 several transactions at once, verification only (KIP-890) · v5
TRANSACTION_ABORTABLE.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

from ottla.api.authorizing import may, require_cluster, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction
from ottla.api.transaction_codes import fenced_as
from ottla.errors import Code, KafkaError
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.security.core.access import Operation, Resource
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.core.deciding import ProducerSession
from ottla.txn.core.messages import Partitions
from ottla.txn.core.transaction import TopicPartition

SEVERAL_SINCE, FENCED_SINCE = 4, 2


class Adding:
    def __init__(self, transactions: TransactionCoordinator, feed: MetadataFeed, call: Call) -> None:
        self._transactions = transactions
        self._feed = feed
        self._version = call.version
        self._call = call

    async def codes(
        self, transactional_id: str, session: ProducerSession, partitions: Partitions, *, verify_only: bool
    ) -> dict[TopicPartition, Code]:
        denied = self._denied(transactional_id, partitions)
        unknown = [one for one in partitions if one not in denied and self._feed.image.partition(*one) is None]
        if denied or unknown:  # all or none
            codes = dict.fromkeys(partitions, Code.operation_not_attempted)
            return codes | dict.fromkeys(unknown, Code.unknown_topic_or_partition) | denied
        try:
            if verify_only:
                found = await self._transactions.verify(transactional_id, session, partitions)
                return dict(zip(partitions, found, strict=True))
            code = (await self._transactions.add(transactional_id, session, partitions)).code
        except KafkaError as error:
            code = error.code
        return dict.fromkeys(partitions, fenced_as(code, self._version, since=FENCED_SINCE))

    def _denied(self, transactional_id: str, partitions: Partitions) -> dict[TopicPartition, Code]:
        """From v4 on requests come from brokers."""
        writable = topic_access(self._call, Operation.WRITE)
        if writable is None or self._version >= SEVERAL_SINCE:
            return {}
        if not may(self._call, Operation.WRITE, Resource.TRANSACTIONAL_ID, transactional_id):
            return dict.fromkeys(partitions, Code.transactional_id_authorization_failed)
        refused = ((one, writable.refused(one[0])) for one in partitions)
        denied = {one: error.code for one, error in refused if error is not None}
        internal = (one for one in partitions if one[0] in INTERNAL_TOPICS)
        return denied | dict.fromkeys(internal, Code.topic_authorization_failed)


@api(key=24, versions=(0, 5))
async def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, call: Call, transactions: TransactionCoordinator, feed: MetadataFeed
) -> Answer:
    adding = Adding(transactions, feed, call)
    if call.version >= SEVERAL_SINCE:
        require_cluster(call, Operation.CLUSTER_ACTION)
        results = await asyncio.gather(*(_transaction(one, adding) for one in request.transactions))
        return call.reply(error_code=Code.none, results_by_transaction=results)
    session = ProducerSession(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    partitions = _partitions(request.v3_and_below_topics)
    codes = await adding.codes(request.v3_and_below_transactional_id, session, partitions, verify_only=False)
    return call.reply(results_by_topic_v3_and_below=_lines(request.v3_and_below_topics, codes))


async def _transaction(one: AddPartitionsToTxnTransaction, adding: Adding) -> dict[str, Any]:
    session = ProducerSession(one.producer_id, one.producer_epoch)
    partitions = _partitions(one.topics)
    codes = await adding.codes(one.transactional_id, session, partitions, verify_only=one.verify_only)
    return {"transactional_id": one.transactional_id, "topic_results": _lines(one.topics, codes)}


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> Partitions:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _lines(topics: Iterable[AddPartitionsToTxnTopic], codes: dict[TopicPartition, Code]) -> list[dict[str, Any]]:
    return [
        {
            "name": topic.name,
            "results_by_partition": [
                {"partition_index": index, "partition_error_code": codes[topic.name, index]}
                for index in topic.partitions
            ],
        }
        for topic in topics
    ]
