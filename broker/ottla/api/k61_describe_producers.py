"""DescribeProducers: who has written to a partition lately, with sequence and epoch (KIP-664). Any replica tells."""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError


@api(key=61, versions=(0, 0))
def describe_producers(request: Any, call: Call) -> Answer:
    return call.reply(
        topics=[
            {"name": topic.name, "partitions": [_line(topic.name, index, call) for index in topic.partition_indexes]}
            for topic in request.topics
        ]
    )


def _line(topic: str, index: int, call: Call) -> dict[str, Any]:
    try:
        partition = call.node.replicas.require(topic, index)
    except KafkaError as error:
        return {"partition_index": index, "error_code": error.code, "error_message": error.message}
    return {
        "partition_index": index,
        "error_code": Code.none,
        "error_message": None,
        "active_producers": [
            {
                "producer_id": producer.id,
                "producer_epoch": producer.epoch,
                "last_sequence": producer.last_sequence,
                "last_timestamp": producer.last_timestamp,
                "coordinator_epoch": producer.coordinator_epoch,
                "current_txn_start_offset": producer.transaction_start,
            }
            for producer in partition.log.producers.by_id.values()
        ],
    }
