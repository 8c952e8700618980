"""OffsetForLeaderEpoch: where a leader epoch ends in this log, so that a client notices a truncation (KIP-320).

v2 current leader epoch · v3 replica id · v4 flexible.
"""

from ottla.api.authorizing import TopicAccess, sees, topic_access
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import OffsetForLeaderEpochOffsetForLeaderPartition, OffsetForLeaderEpochRequest
from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.security.core.access import CLUSTER_NAME, Operation, Resource


@api(key=23, versions=(2, 4))
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, call: Call, replicas: ReplicaHost) -> Answer:
    is_broker = sees(call, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
    seen = None if is_broker else topic_access(call, Operation.DESCRIBE)
    return call.reply(
        topics=[
            {
                "topic": topic.topic,
                "partitions": [_answer(topic.topic, part, replicas, seen) for part in topic.partitions],
            }
            for topic in request.topics
        ]
    )


def _answer(
    topic: str,
    part: OffsetForLeaderEpochOffsetForLeaderPartition,
    replicas: ReplicaHost,
    describable: TopicAccess | None,
) -> dict[str, int]:
    try:
        if describable is not None:
            describable.require(topic)
        partition = replicas.require(topic, part.partition)
        partition.require_leader(part.current_leader_epoch)
    except KafkaError as error:
        return {"error_code": error.code, "partition": part.partition, "leader_epoch": -1, "end_offset": -1}
    epoch, end = partition.log.epochs.end_offset_for(part.leader_epoch, partition.log.end_offset)
    return {"error_code": Code.none, "partition": part.partition, "leader_epoch": epoch, "end_offset": end}
