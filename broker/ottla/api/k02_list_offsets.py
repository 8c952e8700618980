"""ListOffsets: the offset for a time, or for the earliest, latest and newest-timestamped record.

v2 isolation level · v4 leader epochs (KIP-320) · v6 flexible · v7 max timestamp (KIP-734) · v8 earliest local
(KIP-405) · v9 latest tiered (KIP-1005) · v10 timeout (KIP-1075).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import NamedTuple

from ottla.api.authorizing import topic_access
from ottla.api.call import Answer, Call
from ottla.api.lookups import Lookups
from ottla.api.partition_results import at_once
from ottla.api.registry import api
from ottla.api.requests import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.errors import Code, KafkaError
from ottla.replica.host import ReplicaHost
from ottla.replica.partition import Partition
from ottla.security.core.access import Operation
from ottla.storage.log.log import TimestampOffset

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
READ_COMMITTED = 1
CONSUMER = -1
UNKNOWN = TimestampOffset(offset=-1, timestamp=-1, leader_epoch=-1)
KNOWN_SINCE = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}
NOT_AVAILABLE_SINCE = 5

Search = Callable[..., Awaitable[TimestampOffset | None]]


class Asked(NamedTuple):
    """Partitions of one topic, each of them once."""

    name: str
    partitions: list[ListOffsetsPartition]


@api(key=2, versions=(1, 10), elements_max=None)
async def list_offsets(request: ListOffsetsRequest, call: Call, replicas: ReplicaHost, lookups: Lookups) -> Answer:
    topics, twice = _each_once(request.topics)
    search = partial(lookups.run, asyncio.Lock())
    describable = topic_access(call, Operation.DESCRIBE)

    async def answer(topic: str, part: ListOffsetsPartition) -> dict[str, int]:
        if describable is not None and (error := describable.refused(topic)) is not None:
            return _refused(part, error.code)
        if (topic, part.partition_index) in twice:
            return _refused(part, Code.invalid_request)
        return await _answer(topic, part, request, call, replicas, search)

    return call.reply(topics=await at_once(topics, answer, call))


def _each_once(topics: Iterable[ListOffsetsTopic]) -> tuple[list[Asked], set[tuple[str, int]]]:
    """As Kafka: a partition that is asked for more than once has one line in the answer, and is refused."""
    asked: dict[str, dict[int, ListOffsetsPartition]] = {}
    twice: set[tuple[str, int]] = set()
    for topic in topics:
        parts = asked.setdefault(topic.name, {})
        for part in topic.partitions:
            if parts.setdefault(part.partition_index, part) is not part:
                twice.add((topic.name, part.partition_index))
    return [Asked(name, list(parts.values())) for name, parts in asked.items()], twice


def _refused(part: ListOffsetsPartition, code: Code) -> dict[str, int]:
    return {"partition_index": part.partition_index, "error_code": code, "timestamp": -1, "offset": -1}


async def _answer(
    topic: str,
    part: ListOffsetsPartition,
    request: ListOffsetsRequest,
    call: Call,
    replicas: ReplicaHost,
    search: Search,
) -> dict[str, int]:
    try:
        _check_timestamp(part.timestamp, call.version)
        partition = replicas.require(topic, part.partition_index)
        partition.require_leader(part.current_leader_epoch)
        found = await _search(partition, part.timestamp, request, search)
    except KafkaError as error:
        is_new_to_it = error.code is Code.offset_not_available and call.version < NOT_AVAILABLE_SINCE
        return _refused(part, Code.leader_not_available if is_new_to_it else error.code)
    return {
        "partition_index": part.partition_index,
        "error_code": Code.none,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": found.leader_epoch,
    }


def _check_timestamp(timestamp: int, version: int) -> None:
    """Below 0 are names; each came with a version."""
    if timestamp < 0 and version < KNOWN_SINCE.get(timestamp, version + 1):
        raise KafkaError(Code.unsupported_version, f"{timestamp} is no timestamp that ListOffsets v{version} knows")


async def _search(partition: Partition, timestamp: int, request: ListOffsetsRequest, search: Search) -> TimestampOffset:
    log = partition.log
    end = _readable_end(partition, request)
    if timestamp == LATEST:
        _require_settled(partition, request)
        return TimestampOffset(end, -1, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampOffset(log.start_offset, -1, log.epochs.epoch_for_offset(log.start_offset))
    if timestamp == LATEST_TIERED:
        return UNKNOWN
    if timestamp == MAX_TIMESTAMP:
        found = await search(log.max_timestamp)
    else:
        found = await search(log.offset_for_timestamp, timestamp)
    if found is not None and found.offset < end:
        return found
    _require_settled(partition, request)
    return UNKNOWN


def _require_settled(partition: Partition, request: ListOffsetsRequest) -> None:
    """A new leader does not know yet what is committed: an end answered now could go back (KIP-207)."""
    view = partition.view
    if request.replica_id == CONSUMER and view is not None and not view.is_settled:
        raise KafkaError(
            Code.offset_not_available,
            f"{partition}: the high watermark {view.high_watermark} has not reached the start of leader epoch "
            f"{partition.leader_epoch} at {view.epoch_start}",
        )


def _readable_end(partition: Partition, request: ListOffsetsRequest) -> int:
    if request.replica_id != CONSUMER:
        return partition.log.end_offset
    return partition.last_stable_offset if request.isolation_level == READ_COMMITTED else partition.high_watermark
