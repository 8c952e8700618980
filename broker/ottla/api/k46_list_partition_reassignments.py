"""ListPartitionReassignments: what is moving (KIP-455)."""

from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import ListPartitionReassignmentsRequest
from ottla.errors import Code
from ottla.metadata.decisions.reassignments import ongoing
from ottla.metadata.model.state import PartitionState
from ottla.metadata.runtime.feed import MetadataFeed


@api(key=46, versions=(0, 0), elements_max=MANY_ELEMENTS_MAX)
def list_partition_reassignments(request: ListPartitionReassignmentsRequest, call: Call, feed: MetadataFeed) -> Answer:
    asked = None if request.topics is None else {topic.name: topic.partition_indexes for topic in request.topics}
    return call.reply(
        error_code=Code.none,
        error_message=None,
        topics=[
            {"name": topic.name, "partitions": [_partition(state) for state in moving]}
            for topic, moving in ongoing(feed.image, asked)
        ],
    )


def _partition(state: PartitionState) -> dict[str, Any]:
    """One that was being added and is removed again before it was in sync is only shown as removed."""
    return {
        "partition_index": state.index,
        "replicas": state.replicas,
        "adding_replicas": [each for each in state.adding if each not in state.removing],
        "removing_replicas": state.removing,
    }
