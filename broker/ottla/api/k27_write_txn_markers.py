"""WriteTxnMarkers: how transactions ended, for partitions that this broker leads.

Brokers use gRPC for it; the tool that aborts hanging transactions comes here.
"""

from typing import Any

from ottla.api.authorizing import may_cluster, sees
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import WriteTxnMarkersRequest, WriteTxnMarkersWritableTxnMarker
from ottla.errors import Code
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource
from ottla.txn.core.messages import MarkerOrder
from ottla.txn.core.transaction import TopicPartition
from ottla.txn.marker_writer import MarkerWriter


@api(key=27, versions=(1, 1))
async def write_txn_markers(request: WriteTxnMarkersRequest, call: Call, markers: MarkerWriter) -> Answer:
    """One marker after the other: each gives the loop to others, however many there are."""
    allowed = sees(call, Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME)
    if not (allowed or may_cluster(call, Operation.CLUSTER_ACTION)):
        return call.reply(markers=[_denied(one) for one in request.markers])
    return call.reply(markers=[await _marker(one, markers) for one in request.markers])


def _denied(marker: WriteTxnMarkersWritableTxnMarker) -> dict[str, Any]:
    named = {(topic.name, index) for topic in marker.topics for index in topic.partition_indexes}
    return _line(marker, dict.fromkeys(named, Code.cluster_authorization_failed))


async def _marker(marker: WriteTxnMarkersWritableTxnMarker, markers: MarkerWriter) -> dict[str, Any]:
    named = ((topic.name, index) for topic in marker.topics for index in topic.partition_indexes)
    partitions: list[TopicPartition] = list(dict.fromkeys(named))
    order = MarkerOrder(
        producer_id=marker.producer_id,
        epoch=marker.producer_epoch,
        coordinator_epoch=marker.coordinator_epoch,
        commit=marker.transaction_result,
        partitions=partitions,
    )
    codes: dict[TopicPartition, Code] = dict(zip(partitions, await markers.write(order), strict=True))
    return _line(marker, codes)


def _line(marker: WriteTxnMarkersWritableTxnMarker, codes: dict[TopicPartition, Code]) -> dict[str, Any]:
    return {
        "producer_id": marker.producer_id,
        "topics": [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": index, "error_code": codes[topic.name, index]}
                    for index in topic.partition_indexes
                ],
            }
            for topic in marker.topics
        ],
    }
