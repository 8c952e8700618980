"""DescribeQuorum: the metadata quorum, as its leader sees it, under the name of Kafka's metadata topic.

v1 fetch and caught-up times (KIP-836) · v2 directory ids and endpoints (KIP-853).
"""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeQuorumRequest
from ottla.errors import Code
from ottla.metadata.runtime.relay import ControllerLink
from ottla.raft.core.messages import Voter
from ottla.raft.driver import QuorumState, ReplicaState

METADATA_TOPIC = "__cluster_metadata"
CONTROLLER_LISTENER = "CONTROLLER"


@api(key=55, versions=(0, 2))
async def describe_quorum(request: DescribeQuorumRequest, call: Call, quorum: ControllerLink) -> Answer:
    state = await quorum.describe_quorum()
    topics = [
        {
            "topic_name": topic.topic_name,
            "partitions": [_partition(topic.topic_name, p.partition_index, state) for p in topic.partitions],
        }
        for topic in request.topics
    ]
    return call.reply(error_code=Code.none, error_message=None, topics=topics, nodes=_nodes(state))


def _partition(topic: str, index: int, state: QuorumState) -> dict[str, Any]:
    if (topic, index) != (METADATA_TOPIC, 0):
        return {"partition_index": index, "error_code": Code.unknown_topic_or_partition, "error_message": None}
    return {
        "partition_index": index,
        "error_code": Code.none,
        "error_message": None,
        "leader_id": state.leader_id,
        "leader_epoch": state.leader_epoch,
        "high_watermark": state.high_watermark,
        "current_voters": [_replica(replica) for replica in state.voters],
        "observers": [_replica(replica) for replica in state.observers],
    }


def _replica(replica: ReplicaState) -> dict[str, Any]:
    return {
        "replica_id": replica.id,
        "replica_directory_id": replica.directory,
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": replica.last_fetch_ms,
        "last_caught_up_timestamp": replica.last_caught_up_ms,
    }


def _nodes(state: QuorumState) -> list[dict[str, Any]]:
    """Voters by their gRPC address, the only one on which they talk to each other."""
    return [{"node_id": voter.id, "listeners": _listeners(voter)} for voter in state.voter_endpoints]


def _listeners(voter: Voter) -> list[dict[str, Any]]:
    host, _, port = voter.endpoint.rpartition(":")
    return [{"name": CONTROLLER_LISTENER, "host": host.strip("[]"), "port": int(port)}] if host else []
