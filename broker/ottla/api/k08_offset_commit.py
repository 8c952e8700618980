"""OffsetCommit: where a group will go on reading.

v2-4 time of retention · v5 without it (KIP-211) · v6 leader epochs (KIP-320) · v7 static members (KIP-345) · v8
flexible · v9 member epochs of KIP-848.
"""

from collections.abc import Awaitable
from typing import Any

from ottla.api.call import Answer, Call
from ottla.api.registry import api
from ottla.errors import Code, KafkaError
from ottla.group.committing import Commit, committing_group
from ottla.group.offset_records import NO_EXPIRY, CommittedOffset

Results = list[tuple[str, list[tuple[int, Code]]]]


@api(key=8, versions=(2, 9))
def offset_commit(request: Any, call: Call) -> Answer | Awaitable[Answer]:
    entries, results = _sorted_out(request, call)
    if not entries:
        return _reply(call, results, Code.none)
    try:
        shard = call.node.groups.shard_of(request.group_id)
        committing_group(shard, request, call.version)
    except KafkaError as error:
        return _reply(call, results, error.code)
    return Commit(shard, request.group_id, entries, lambda code: _reply(call, results, code)).begin()


def _sorted_out(request: Any, call: Call) -> tuple[list[tuple[str, int, CommittedOffset]], Results]:
    """What can be committed, and the code of every partition if the rest goes well."""
    topics, now_ms = call.node.image.topics, call.node.system.clock.wall_ms()
    metadata_max = call.node.settings.broker("offset.metadata.max.bytes")
    retention_ms = getattr(request, "retention_time", -1)
    expires_ms = NO_EXPIRY if retention_ms < 0 else now_ms + retention_ms
    entries: list[tuple[str, int, CommittedOffset]] = []
    results: Results = []
    for topic in request.topics:
        name, known = topic.name, topics.get(topic.name)
        count = len(known.partitions) if known is not None else 0
        lines: list[tuple[int, Code]] = []
        for one in topic.partitions:
            index, metadata = one.partition_index, one.committed_metadata or ""
            if not 0 <= index < count:
                lines.append((index, Code.unknown_topic_or_partition))
            elif len(metadata) > metadata_max:
                lines.append((index, Code.offset_metadata_too_large))
            else:
                lines.append((index, Code.none))
                committed = CommittedOffset(
                    one.committed_offset, one.committed_leader_epoch, metadata, now_ms, expires_ms
                )
                entries.append((name, index, committed))
        results.append((name, lines))
    return entries, results


def _reply(call: Call, results: Results, code: Code) -> Answer:
    """`code` is told for every partition that has no trouble of its own."""
    return call.reply(
        topics=[
            {
                "name": name,
                "partitions": [{"partition_index": index, "error_code": own or code} for index, own in lines],
            }
            for name, lines in results
        ]
    )
