"""DescribeLogDirs: sizes of replicas by log dir.

v2 flexible · v3 top-level error · v4 total and usable bytes (KIP-827).
"""

from typing import Any

from ottla.api.authorizing import may_cluster
from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.api.requests import DescribeLogDirsRequest
from ottla.api.slices import encoded, paced
from ottla.errors import Code
from ottla.replica.host import ReplicaHost
from ottla.security.core.access import Operation
from ottla.storage.directories.directories import DirectoryFacts


@api(key=35, versions=(1, 4))
async def describe_log_dirs(request: DescribeLogDirsRequest, call: Call, replicas: ReplicaHost) -> Answer:
    if not may_cluster(call, Operation.DESCRIBE):
        return call.reply(error_code=Code.cluster_authorization_failed, results=[])
    asked = None
    if request.topics is not None:
        asked = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    facts = await replicas.directories.describe()
    return call.reply(error_code=Code.none, results=[await _result(directory, asked, call) for directory in facts])


async def _result(directory: DirectoryFacts, asked: set[tuple[str, int]] | None, call: Call) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    async for (topic, index), size in paced(directory.sizes.items(), call):
        if asked is None or (topic, index) in asked:
            line = {"partition_index": index, "partition_size": size, "offset_lag": 0, "is_future_key": False}
            topics.setdefault(topic, []).append(line)
    lines = ({"name": name, "partitions": found} async for name, found in paced(topics.items(), call))
    return {
        "error_code": Code.kafka_storage_error if directory.error else Code.none,
        "log_dir": directory.path,
        "topics": await encoded(call, ("results", "topics"), lines),
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
    }
