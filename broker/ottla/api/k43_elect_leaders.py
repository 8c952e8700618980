"""ElectLeaders: preferred or unclean election by hand (KIP-183). v1 election type (KIP-460) · v2 flexible."""

from collections.abc import Sequence

from ottla.api.authorizing import require_cluster
from ottla.api.call import Answer, Call
from ottla.api.controller_client import ControllerClient
from ottla.api.partition_results import PartitionOutcome, by_topic, refused
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import ElectLeadersRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import ElectLeaders, PartitionRef
from ottla.security.core.access import Operation


@api(key=43, versions=(0, 2), elements_max=MANY_ELEMENTS_MAX)
async def elect_leaders(request: ElectLeadersRequest, call: Call, controller: ControllerClient) -> Answer:
    partitions = _asked(request)
    try:
        require_cluster(call, Operation.ALTER)
        outcomes = await controller.submit(ElectLeaders(request.election_type, partitions))
    except KafkaError as error:
        return _answer(call, error.code, refused(partitions or (), error))
    return _answer(call, Code.none, outcomes)


def _asked(request: ElectLeadersRequest) -> list[PartitionRef] | None:
    """None: everything."""
    if request.topic_partitions is None:
        return None
    return [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]


def _answer(call: Call, code: Code, outcomes: Sequence[PartitionOutcome]) -> Answer:
    return call.reply(
        error_code=code,
        replica_election_results=[
            {
                "topic": name,
                "partition_result": [
                    {"partition_id": each.value[1], "error_code": each.code, "error_message": each.message}
                    for each in found
                ],
            }
            for name, found in by_topic(outcomes)
        ],
    )
