"""AlterPartitionReassignments: move partitions between brokers, or cancel that (KIP-455).

v1 may refuse a change of the replication factor (KIP-860).
"""

from typing import Any

from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.partition_results import by_topic
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import AlterPartitionReassignmentsRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import AlterReassignments, Reassignment
from ottla.security.core.access import Operation


@api(key=45, versions=(0, 1), elements_max=MANY_ELEMENTS_MAX)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, call: Call, controller: ControllerClient
) -> Answer:
    allowed = request.allow_replication_factor_change
    wanted = [
        Reassignment(topic.name, line.partition_index, None if line.replicas is None else tuple(line.replicas))
        for topic in request.topics
        for line in topic.partitions
    ]
    try:
        require_cluster(call, Operation.ALTER)
        outcomes = await controller.submit(AlterReassignments(wanted, allow_replication_factor_change=allowed))
    except KafkaError as error:
        return call.reply(
            allow_replication_factor_change=allowed,
            error_code=error.code,
            error_message=error.message,
            responses=_refused(request, error),
        )
    return call.reply(
        allow_replication_factor_change=allowed,
        error_code=Code.none,
        error_message=None,
        responses=[
            {
                "name": name,
                "partitions": [
                    {"partition_index": each.value[1], "error_code": each.code, "error_message": each.message}
                    for each in found
                ],
            }
            for name, found in by_topic(outcomes)
        ],
    )


def _refused(request: AlterPartitionReassignmentsRequest, error: KafkaError) -> list[dict[str, Any]]:
    """As Kafka: the error of the whole is that of every partition."""
    fields = {"error_code": error.code, "error_message": error.message}
    return [
        {
            "name": topic.name,
            "partitions": [{"partition_index": line.partition_index, **fields} for line in topic.partitions],
        }
        for topic in request.topics
    ]
