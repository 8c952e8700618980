"""DescribeProducers: who has written to a partition lately, with sequence and epoch (KIP-664). Any replica answers."""

from collections.abc import AsyncIterator
from typing import Any

from ottla.api.authorizing import topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeProducersRequest
from ottla.api.slices import AnswerTooLarge, Memo, encoded, lines, paced
from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.security.core.access import Operation
from ottla.storage.core.producers import Producer

PARTITIONS = ("topics", "partitions")


@api(key=61, versions=(0, 0))
async def describe_producers(request: DescribeProducersRequest, call: Call, replicas: ReplicaHost) -> Answer:
    """In slices, however small the request: a partition may have very many producers."""
    try:
        return call.reply(topics=await encoded(call, ("topics",), _topics(request, call, replicas)))
    except AnswerTooLarge as error:
        call.forget_made()
        topics = [
            {"name": topic.name, "partitions": [_refused(index, error) for index in topic.partition_indexes]}
            for topic in request.topics
        ]
        return call.reply(topics=topics)


async def _topics(
    request: DescribeProducersRequest, call: Call, replicas: ReplicaHost
) -> AsyncIterator[dict[str, Any]]:
    memo: Memo = {}
    readable = topic_access(call, Operation.READ)
    for topic in request.topics:

        async def line(index: int, name: str = topic.name) -> dict[str, Any]:
            if readable is not None:
                readable.require(name)
            return await _line(replicas.require(name, index), index, call)

        def key(index: int, name: str = topic.name) -> tuple[str, int]:
            return name, index

        made = lines(call, PARTITIONS, topic.partition_indexes, line, refused=_refused, key=key, memo=memo)
        yield {"name": topic.name, "partitions": await encoded(call, PARTITIONS, made)}


def _refused(index: int, error: KafkaError) -> dict[str, Any]:
    return {"partition_index": index, "error_code": error.code, "error_message": error.message}


async def _line(partition: Partition, index: int, call: Call) -> dict[str, Any]:
    producers = list(partition.log.producers.by_id.values())
    active = (_active(producer) async for producer in paced(producers, call))
    return {
        "partition_index": index,
        "error_code": Code.none,
        "error_message": None,
        "active_producers": await encoded(call, (*PARTITIONS, "active_producers"), active),
    }


def _active(producer: Producer) -> dict[str, Any]:
    return {
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "last_sequence": producer.last_sequence,
        "last_timestamp": producer.last_timestamp,
        "coordinator_epoch": producer.coordinator_epoch,
        "current_txn_start_offset": producer.transaction_start,
    }
