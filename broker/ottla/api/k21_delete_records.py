"""DeleteRecords: raise the log start offset on all living replicas (KIP-107). v2 flexible."""

import asyncio

from ottla.api.authorizing import topic_access
from ottla.api.call import Answer, Call
from ottla.api.partition_results import at_once
from ottla.api.registry import MANY_ELEMENTS_MAX, api
from ottla.api.requests import DeleteRecordsPartition, DeleteRecordsRequest
from ottla.errors import Code, KafkaError
from ottla.metadata.model.image import Image
from ottla.metadata.model.topic_names import INTERNAL_TOPICS
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.host import ReplicaHost
from ottla.security.core.access import Operation

TO_THE_END = -1


@api(key=21, versions=(0, 2), elements_max=MANY_ELEMENTS_MAX)
async def delete_records(
    request: DeleteRecordsRequest, call: Call, replicas: ReplicaHost, feed: MetadataFeed
) -> Answer:
    deletable = topic_access(call, Operation.DELETE)

    async def line(topic: str, part: DeleteRecordsPartition) -> dict[str, int]:
        if deletable is not None and (error := deletable.refused(topic)) is not None:
            return _failed(part, error.code)
        return await _line(topic, part, request.timeout, replicas, feed.image)

    return call.reply(topics=await at_once(request.topics, line, call))


async def _line(
    topic: str, part: DeleteRecordsPartition, timeout_ms: int, replicas: ReplicaHost, image: Image
) -> dict[str, int]:
    try:
        if topic in INTERNAL_TOPICS and image.partition(topic, part.partition_index) is not None:
            raise KafkaError(Code.invalid_topic_exception, f"records of the internal topic {topic} stay")
        partition = replicas.require(topic, part.partition_index)
        partition.require_leader()
        _refuse_policy(partition.log.settings.cleanup_policies, topic)
        offset = partition.high_watermark if part.offset == TO_THE_END else part.offset
        if not 0 <= offset <= partition.high_watermark:
            raise KafkaError(Code.offset_out_of_range)
        partition.delete_before(offset)
        if (deleted := partition.deleted_everywhere(offset)) is not None:
            await asyncio.wait_for(deleted, timeout_ms / 1000)
    except TimeoutError:
        return _failed(part, Code.request_timed_out)
    except KafkaError as error:
        return _failed(part, error.code)
    return {
        "partition_index": part.partition_index,
        "low_watermark": partition.low_watermark,
        "error_code": Code.none,
    }


def _failed(part: DeleteRecordsPartition, code: Code) -> dict[str, int]:
    return {"partition_index": part.partition_index, "low_watermark": -1, "error_code": code}


def _refuse_policy(policies: frozenset[str], topic: str) -> None:
    if "delete" not in policies:
        raise KafkaError(Code.policy_violation, f"records of {topic} are deleted by compaction only (cleanup.policy)")
